//! Several workers in one process.

use std::{fmt, future::Future};

use sqlx::PgPool;

use super::{
    FlowWorker, HealthCheck, StepWorker, StepWorkers, WorkerError, WorkersHandle, group::Group,
    requests,
};
use crate::startup::StartupError;

/// Several workers in one process, of any flows: started in order, and stopped together.
///
/// When one can't start, those that did are shut down before the error is returned. A worker whose
/// function is out of service, fenced or disabled, is no such reason while another one serves: it
/// waits, and starts when its function is in service again.
///
/// A worker that ends while it serves, because of a message that it can't take or of a fence, stops
/// alone: the others continue, and it comes back like that. The process ends when none serves any
/// more. [`health`](Self::health) and the log show which one is out of service, and so does the
/// error at the end.
///
/// Workers of one process wake each other: a step that one makes ready is claimed by another
/// without a wait for its next look.
///
/// ```no_run
/// # async fn run<Plain, Ingest>(pool: sqlx::PgPool, fetch: Ingest::Step) -> Result<(), Box<dyn std::error::Error>>
/// # where
/// #     Plain: pgflow_runtime::flow::Flow<State = (), Queues = pgflow_runtime::flow::OneQueue>,
/// #     Ingest: pgflow_runtime::flow::StepQueued<State = ()>,
/// # {
/// # use pgflow_runtime as pgflow;
/// use pgflow::worker::{FlowWorker, StepWorker, Workers};
///
/// Workers::new(&pool)
///     .add(FlowWorker::<Plain>::new())
///     .add(StepWorker::<Ingest>::new(fetch).concurrency(32))
///     .run()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "workers do nothing until they are started or run"]
pub struct Workers {
    pool: PgPool,
    group: Group,
}

impl Workers {
    /// No worker yet; all will use the pool.
    pub fn new(pool: &PgPool) -> Self {
        Self {
            pool: pool.clone(),
            group: Group::default(),
        }
    }

    /// Adds a [`FlowWorker`], a [`StepWorker`], or the [`StepWorkers`] of a flow.
    #[expect(
        clippy::should_implement_trait,
        reason = "nobody takes workers for numbers"
    )]
    pub fn add(mut self, workers: impl AnyWorkers) -> Self {
        self.group.add(workers.into_group());
        self
    }

    /// Shuts all down when the future resolves, instead of on SIGTERM and ctrl-c.
    ///
    /// For a `CancellationToken` give `token.cancelled_owned()`.
    pub fn shutdown_on(mut self, request: impl Future<Output = ()> + Send + 'static) -> Self {
        self.group.shutdown_on(requests::request(request));
        self
    }

    /// Sets whether the database's notifications wake the workers, except those with their own
    /// setting; yes by default. See [`FlowWorker::listen`].
    pub fn listen(mut self, listen: bool) -> Self {
        self.group.listen(listen);
        self
    }

    /// The name of the build that the workers run, except those with a name of their own. See
    /// [`FlowWorker::build`].
    pub fn build(mut self, build: impl Into<String>) -> Self {
        self.group.build(build.into());
        self
    }

    /// Returns a check of the health of these workers, to be asked before and after they start: for
    /// the liveness and readiness probes of a supervisor.
    ///
    /// ```no_run
    /// # async fn run(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
    /// # use pgflow_runtime as pgflow;
    /// use pgflow::worker::Workers;
    ///
    /// let workers = Workers::new(&pool);
    /// let health = workers.health();
    /// let is_live = move || health.check().is_live; // asked by a route of your server
    /// workers.run().await?;
    /// # let _ = is_live;
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> HealthCheck {
        self.group.health()
    }

    /// Starts the workers one after the other and returns once all are registered; they then serve
    /// in the background.
    ///
    /// Installs no signal handlers: use the handle, or [`shutdown_on`](Self::shutdown_on).
    ///
    /// # Errors
    ///
    /// Why one did not start. None runs then, and none is registered as running.
    pub async fn start(self) -> Result<WorkersHandle, StartupError> {
        self.group.start(&self.pool).await.map(WorkersHandle::new)
    }

    /// Starts the workers and serves until SIGTERM, ctrl-c or [`shutdown_on`](Self::shutdown_on),
    /// then drains.
    ///
    /// A second signal ends the process at once, with exit code 143 for SIGTERM and 130 for ctrl-c,
    /// whatever handlers do. Dropping the future ends the workers at once. In both cases the tasks
    /// that still ran are repeated by stall recovery.
    ///
    /// Both signals are pgflow's from here on. When this has returned they end the process again,
    /// unless the program had handled or ignored them before. One that installs its own handlers
    /// later gives [`shutdown_on`](Self::shutdown_on).
    ///
    /// # Errors
    ///
    /// Why one did not start, or why the first stopped that did without being asked to and did not
    /// come back.
    pub async fn run(self) -> Result<(), WorkerError> {
        self.group.run(&self.pool).await
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Workers").field(&self.group).finish()
    }
}

/// A worker, or several, that can be [added](Workers::add) to [`Workers`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be added to `Workers`",
    label = "expected a `FlowWorker`, a `StepWorker`, or `StepWorker::<..>::all()`"
)]
pub trait AnyWorkers: sealed::IntoGroup {}

impl<F> AnyWorkers for FlowWorker<F> {}
impl<F> AnyWorkers for StepWorker<F> {}
impl<F> AnyWorkers for StepWorkers<F> {}

mod sealed {
    use super::{FlowWorker, Group, StepWorker, StepWorkers};

    pub trait IntoGroup {
        fn into_group(self) -> Group;
    }

    impl<F> IntoGroup for FlowWorker<F> {
        fn into_group(self) -> Group {
            self.into_group()
        }
    }

    impl<F> IntoGroup for StepWorker<F> {
        fn into_group(self) -> Group {
            self.into_group()
        }
    }

    impl<F> IntoGroup for StepWorkers<F> {
        fn into_group(self) -> Group {
            self.into_group()
        }
    }
}
