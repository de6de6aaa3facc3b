//! The worker of one step.

use std::{fmt, marker::PhantomData, sync::Arc};

use sqlx::PgPool;

use super::{
    StepWorkers, WorkerError, WorkerHandle,
    bounds::{
        KnowsQueues, NeedsNoState, OfFlow, OfKnownQueues, OfStepQueues, QueueOfEachStep,
        RunsStepQueues, StateOf, WorkerOf,
    },
    builder::{Builder, option_functions},
    group::Group,
    handlers::{self, Handlers},
};
use crate::{
    flow::{AcceptsStep, Flow, StepId},
    startup::StartupError,
};

/// Runs one step of a flow that has a queue for each of its steps, that is, one declared
/// `with_step_queues`.
///
/// Each step needs at least one such worker: tasks of a step without one wait. Which process runs
/// which is up to you; [`all`](Self::all) makes one for each, and [`Workers`](super::Workers) runs
/// any choice of them in one process.
///
/// ```no_run
/// # async fn run<F>(pool: sqlx::PgPool, fetch: F::Step) -> Result<(), Box<dyn std::error::Error>>
/// # where F: pgflow_runtime::flow::StepQueued<State = ()> {
/// # use pgflow_runtime as pgflow;
/// use pgflow::worker::StepWorker;
///
/// StepWorker::<F>::new(fetch).concurrency(32).run(&pool).await?;
/// # Ok(())
/// # }
/// ```
// No `F: Flow` here: a bound turns "not a flow" into two errors.
#[must_use = "a worker does nothing until it is started or run"]
pub struct StepWorker<F> {
    builder: Builder,
    flow: PhantomData<fn() -> F>,
}

impl<F> StepWorker<F>
where
    Self: WorkerOf<F>,
    OfFlow<Self, F>: KnowsQueues<F>,
    OfKnownQueues<Self, F>: RunsStepQueues<F>,
    OfStepQueues<Self, F>: NeedsNoState<F>,
{
    /// A worker for a step of a flow without state; the step is an `F::Step`.
    pub fn new<S>(step: S) -> Self
    where
        F: Flow,
        F::Step: AcceptsStep<S, F>,
    {
        Self::with_state(F::Step::accept(step), OfStepQueues::<Self, F>::state())
    }
}

impl<F> StepWorker<F>
where
    Self: WorkerOf<F>,
    OfFlow<Self, F>: KnowsQueues<F>,
    OfKnownQueues<Self, F>: RunsStepQueues<F>,
{
    /// A worker whose handler takes `state`.
    // Not any type with a bound of ours, as `new`: with both types known, rustc sees that arguments
    // were swapped.
    pub fn with_state(step: F::Step, state: F::State) -> Self
    where
        F: Flow,
    {
        Self::of(Builder::new(handlers::of::<F>(state), Some(step.index())))
    }

    /// One worker for each step; their handlers share `state`, which need not be `Clone`.
    pub fn all_with_state(state: F::State) -> StepWorkers<F>
    where
        F: Flow,
    {
        Self::of_all(state)
    }
}

impl<F> StepWorker<F> {
    /// One worker for each step of a flow without state.
    pub fn all() -> StepWorkers<F>
    where
        F: Flow,
        F::Queues: QueueOfEachStep<F>,
        (): StateOf<F>,
    {
        Self::of_all(StateOf::<F>::into_state(()))
    }

    fn of_all(state: F::State) -> StepWorkers<F>
    where
        F: Flow,
    {
        let handlers: Arc<dyn Handlers> = handlers::of::<F>(state);
        let workers = F::Step::ALL
            .iter()
            .map(|step| Builder::new(Arc::clone(&handlers), Some(step.index())))
            .collect();
        StepWorkers::of(workers)
    }

    pub(crate) fn of(builder: Builder) -> Self {
        Self {
            builder,
            flow: PhantomData,
        }
    }

    option_functions!(builder.settings, builder.shutdown_on);

    /// The name under which operators fence and enable the worker: 1 to 128 characters, no spaces;
    /// the name of the step's queue by default.
    pub fn function_name(mut self, name: impl Into<String>) -> Self {
        self.builder.settings.function_name = Some(name.into());
        self
    }

    /// Starts the worker and returns once it is registered; it then serves in the background. Warns
    /// in the log when other steps of the flow have no worker yet.
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

    pub(crate) fn into_builder(self) -> Builder {
        self.builder
    }
}

impl<F> fmt::Debug for StepWorker<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StepWorker").field(&self.builder).finish()
    }
}
