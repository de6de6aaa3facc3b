//! The worker of a flow with one queue.

use std::{fmt, marker::PhantomData};

use sqlx::PgPool;

use super::{
    StepWorkers, WorkerError, WorkerHandle,
    bounds::{
        KnowsQueues, NeedsNoState, OfFlow, OfKnownQueues, OfOneQueue, RunsOneQueue, RunsStepsApart,
        WorkerOf,
    },
    builder::{Builder, option_functions},
    group::Group,
    handlers,
};
use crate::{flow::Flow, startup::StartupError};

/// Runs a flow that has one queue for all its steps.
///
/// ```no_run
/// # async fn run<F>(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>>
/// # where F: pgflow_runtime::flow::Flow<State = (), Queues = pgflow_runtime::flow::OneQueue> {
/// # use pgflow_runtime as pgflow;
/// use pgflow::worker::FlowWorker;
///
/// FlowWorker::<F>::new().concurrency(8).run(&pool).await?;
/// # Ok(())
/// # }
/// ```
// No `F: Flow` here: a bound turns "not a flow" into two errors.
#[must_use = "a worker does nothing until it is started or run"]
pub struct FlowWorker<F> {
    builder: Builder,
    flow: PhantomData<fn() -> F>,
}

impl<F> FlowWorker<F>
where
    Self: WorkerOf<F>,
    OfFlow<Self, F>: KnowsQueues<F>,
    OfKnownQueues<Self, F>: RunsOneQueue<F>,
    OfOneQueue<Self, F>: NeedsNoState<F>,
{
    /// A worker for a flow without state.
    #[expect(
        clippy::new_without_default,
        reason = "a worker has no default: its flow must be named"
    )]
    pub fn new() -> Self
    where
        F: Flow,
    {
        Self::with_state(OfOneQueue::<Self, F>::state())
    }
}

impl<F> FlowWorker<F>
where
    Self: WorkerOf<F>,
    OfFlow<Self, F>: KnowsQueues<F>,
    OfKnownQueues<Self, F>: RunsOneQueue<F>,
{
    /// A worker whose handlers share `state`.
    pub fn with_state(state: F::State) -> Self
    where
        F: Flow,
    {
        Self {
            builder: Builder::new(handlers::of::<F>(state), None),
            flow: PhantomData,
        }
    }
}

impl<F> FlowWorker<F> {
    /// There for its message.
    #[doc(hidden)]
    pub fn all() -> StepWorkers<F>
    where
        Self: RunsStepsApart<F>,
    {
        <Self as RunsStepsApart<F>>::all()
    }

    option_functions!(builder.settings, builder.shutdown_on);

    /// The name under which operators fence and enable the worker: 1 to 128 characters, no spaces;
    /// the flow's slug by default.
    pub fn function_name(mut self, name: impl Into<String>) -> Self {
        self.builder.settings.function_name = Some(name.into());
        self
    }

    /// Starts the worker and returns once it is registered; it then serves in the background.
    ///
    /// Installs no signal handlers: use the handle, or [`shutdown_on`](Self::shutdown_on).
    pub async fn start(self, pool: &PgPool) -> Result<WorkerHandle, StartupError> {
        self.into_group().start(pool).await.map(WorkerHandle::new)
    }

    /// Starts the worker and serves until SIGTERM, ctrl-c or [`shutdown_on`](Self::shutdown_on),
    /// then drains.
    ///
    /// A second signal ends the process at once, with exit code 143 for SIGTERM and 130 for ctrl-c,
    /// whatever handlers do. Dropping the future ends the worker at once. In both cases the tasks
    /// that still ran are repeated by stall recovery.
    ///
    /// Both signals are pgflow's from here on. When this has returned they end the process again,
    /// unless the program had handled or ignored them before. One that installs its own handlers
    /// later gives [`shutdown_on`](Self::shutdown_on).
    ///
    /// # Errors
    ///
    /// Why the worker did not start, or stopped without being asked to.
    pub async fn run(self, pool: &PgPool) -> Result<(), WorkerError> {
        self.into_group().run(pool).await
    }

    pub(crate) fn into_group(self) -> Group {
        Group::of(self.builder)
    }
}

impl<F> fmt::Debug for FlowWorker<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FlowWorker").field(&self.builder).finish()
    }
}
