//! Workers: they claim the tasks of a flow, run its handlers and record what these return.
//!
//! ```text
//! Starting -> Running -> Draining -> Stopped        work that the worker can't do: Running -> Stopped with an error
//! ```
//!
//! A worker asks the database for as many tasks as it has free slots, runs them side by side, and records outputs in batches. Postgres
//! decides what is ready; the worker only executes. Handlers run at least once per task, state changes happen exactly once: an attempt
//! that is no longer the current one changes nothing.
//!
//! Handlers are async functions: one that blocks its thread can be neither timed out nor dropped, and holds up whatever shares the
//! thread. Long computations and blocking calls belong into `tokio::task::spawn_blocking`.
//!
//! # How soon
//!
//! A step that becomes ready through this worker's own completions is claimed at once. Everything else (new runs, retries, what other
//! workers made ready) is found at the next look into the queue, at the latest after [`poll_interval`](FlowWorker::poll_interval).
//!
//! # Connections
//!
//! A worker uses the pool that it is given, for three calls at a time at most: a claim, a batch of outputs, and a failure or
//! heartbeat. Handlers that use the same pool while they run need one connection each on top of that.
//!
//! # Shutdown
//!
//! A worker that is asked to stop claims nothing more, signals `ctx.cancelled()`, and waits for its handlers up to
//! [`shutdown_timeout`](FlowWorker::shutdown_timeout). What it had claimed and not started goes back into the queue, and no attempt is
//! counted. A handler that still runs at the end of the timeout is dropped; its attempt counts, and stall recovery repeats the task 30 s
//! after the attempt would have timed out. Recording the last results may take 2 s longer than the timeout.
//!
//! # Logs
//!
//! Everything is logged in the span `pgflow.worker` with the fields `flow`, `step`, `queue` and `worker_id`; each attempt in a span
//! `pgflow.task` below it, with `run_id`, `step`, `task_index` and `attempt`. Events of handlers carry both.

mod attempt;
mod claimer;
mod completer;
mod error;
mod executor;
mod handle;
mod handlers;
mod heartbeat;
mod maintenance;
mod options;
mod recorder;
mod serve;
mod shutdown;
#[cfg(test)]
pub(crate) mod testing;
mod wakeup;

use std::{fmt, future::Future, marker::PhantomData, sync::Arc, time::Duration};

use sqlx::PgPool;
use tracing::{Instrument, Span, info, info_span};

pub use crate::sql::claim::UnsupportedMessage;
pub use error::WorkerError;
pub use handle::WorkerHandle;
pub use options::OptionProblem;

pub(crate) use options::WorkerOptions;
pub(crate) use serve::Shared;
pub(crate) use wakeup::wake_flow;

use crate::{
    flow::{BoxFuture, Flow, RunByFlowWorker, StateOf},
    startup::{self, StartupError},
};
use handlers::Handlers;
use serve::serve;
use shutdown::{Signals, Stop};

/// Runs a flow that has one queue for all its steps.
///
/// ```no_run
/// # async fn run<F>(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>>
/// # where F: pgflow_runtime::flow::Flow<State = (), Queues = pgflow_runtime::flow::OneQueue> {
/// use pgflow_runtime::worker::FlowWorker;
///
/// FlowWorker::<F>::new().concurrency(8).run(&pool).await?;
/// # Ok(())
/// # }
/// ```
// No `F: Flow` here or on the `impl` blocks: a bound there turns "not a flow" into two errors.
pub struct FlowWorker<F> {
    handlers: Arc<dyn Handlers>,
    options: WorkerOptions,
    shutdown_on: Option<BoxFuture<'static, ()>>,
    flow: PhantomData<fn() -> F>,
}

impl<F> FlowWorker<F> {
    /// A worker for a flow without state.
    #[expect(
        clippy::new_without_default,
        reason = "a worker has no default: its flow must be named"
    )]
    pub fn new() -> Self
    where
        F: Flow,
        F::Queues: RunByFlowWorker<F>,
        (): StateOf<F>,
    {
        Self::with_state(StateOf::<F>::into_state(()))
    }

    /// A worker whose handlers share `state`.
    pub fn with_state(state: F::State) -> Self
    where
        F: Flow,
        F::Queues: RunByFlowWorker<F>,
    {
        Self {
            handlers: handlers::of::<F>(state),
            options: WorkerOptions::new(F::DEFINITION.slug),
            shutdown_on: None,
            flow: PhantomData,
        }
    }

    /// How many tasks run side by side: 1 to 10,000; 10 by default.
    pub fn concurrency(mut self, tasks: usize) -> Self {
        self.options.concurrency = tasks;
        self
    }

    /// How long an idle worker waits between two looks into its queue, jittered by a fifth: 10 ms to 1 h; 1 s by default.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.options.poll_interval = interval;
        self
    }

    /// How long handlers may go on after the worker was asked to stop: at most 1 h; 30 s by default.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.options.shutdown_timeout = timeout;
        self
    }

    /// Shuts down when the future resolves, instead of on SIGTERM and ctrl-c.
    ///
    /// For a `CancellationToken` give `token.cancelled_owned()`.
    pub fn shutdown_on(mut self, request: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown_on = Some(Box::pin(request));
        self
    }

    /// The name under which operators fence and enable the worker: 1 to 128 characters, no spaces; the flow's slug by default.
    pub fn function_name(mut self, name: impl Into<String>) -> Self {
        self.options.function_name = name.into();
        self
    }

    /// Whether starting applies pending migrations of schema `pgflow` first; no by default.
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.options.migrate = migrate;
        self
    }

    /// Starts the worker and returns once it is registered; it then serves in the background.
    ///
    /// Installs no signal handlers: use the handle, or [`shutdown_on`](Self::shutdown_on).
    pub async fn start(mut self, pool: &PgPool) -> Result<WorkerHandle, StartupError> {
        let shutdown_on = self.shutdown_on.take();
        let (shared, span) = self.register(pool).await?;
        if let Some(request) = shutdown_on {
            let stop = shared.stop.clone();
            tokio::spawn(async move {
                // Ends with the worker, if that stops for another reason.
                if stop.unless_requested(request).await.is_some() {
                    stop.request();
                }
            });
        }
        Ok(WorkerHandle::spawn(shared, span))
    }

    /// Starts the worker and serves until SIGTERM, ctrl-c or [`shutdown_on`](Self::shutdown_on), then drains.
    ///
    /// A second signal ends the drain at once. Dropping the future ends the worker at once, too; in both cases the tasks that still ran
    /// are repeated by stall recovery.
    ///
    /// # Errors
    ///
    /// Why the worker did not start, or stopped without being asked to.
    pub async fn run(mut self, pool: &PgPool) -> Result<(), WorkerError> {
        let mut requests = match self.shutdown_on.take() {
            Some(request) => Requests::Once(Some(request)),
            None => Requests::Signals(Signals::listen().map_err(WorkerError::Signals)?),
        };
        let (shared, span) = tokio::select! {
            registered = self.register(pool) => registered?,
            () = requests.next() => return Ok(()),
        };
        let stop = shared.stop.clone();
        let serve = serve(shared).instrument(span.clone());
        tokio::pin!(serve);
        tokio::select! {
            result = &mut serve => return result,
            () = requests.next() => span.in_scope(|| info!("worker was asked to stop")),
        }
        stop.request();
        tokio::select! {
            result = serve => result,
            () = requests.next() => Err(WorkerError::Interrupted),
        }
    }

    async fn register(self, pool: &PgPool) -> Result<(Arc<Shared>, Span), StartupError> {
        let definition = self.handlers.definition();
        let registered = startup::start(pool, definition, &self.options).await?;
        let span = info_span!(
            "pgflow.worker",
            flow = definition.slug,
            step = tracing::field::Empty,
            queue = registered.queue_name,
            worker_id = %registered.worker_id
        );
        span.in_scope(|| {
            info!(
                flow = definition.slug,
                queue = registered.queue_name,
                function = self.options.function_name,
                concurrency = self.options.concurrency,
                definition = registered.compile_status.as_str(),
                "worker started"
            );
        });
        let shared = Shared {
            pool: pool.clone(),
            worker_id: registered.worker_id,
            queue_name: registered.queue_name,
            handlers: self.handlers,
            options: self.options,
            wakeup: wakeup::Wakeup::of_flow(definition.slug),
            stop: Stop::default(),
        };
        Ok((Arc::new(shared), span))
    }
}

impl<F> fmt::Debug for FlowWorker<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowWorker")
            .field("flow", &self.handlers.definition().slug)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What asks a worker to stop: signals as often as they come, a future of the caller's once.
enum Requests {
    Signals(Signals),
    Once(Option<BoxFuture<'static, ()>>),
}

impl Requests {
    async fn next(&mut self) {
        match self {
            Self::Signals(signals) => signals.next().await,
            Self::Once(request) => match request {
                Some(future) => {
                    future.await;
                    *request = None;
                }
                None => std::future::pending().await,
            },
        }
    }
}
