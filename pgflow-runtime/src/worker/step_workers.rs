//! The workers of all steps of a flow.

use std::{fmt, marker::PhantomData, mem, sync::Arc};

use sqlx::PgPool;

use super::{
    StepWorker, WorkerError, WorkersHandle,
    builder::{Builder, option_functions},
    group::Group,
    options::Settings,
    requests::Request,
};
use crate::{
    flow::{AcceptsStep, Flow, StepId},
    startup::StartupError,
};

/// One worker for each step of a flow, all in this process: [`StepWorker::all`].
///
/// They are started and stopped together. One that fails, or whose function is out of service,
/// leaves the others alone, as in [`Workers`](super::Workers).
///
/// Settings here apply to each worker; those of [`step`](Self::step) take precedence, in whichever
/// order both are called.
///
/// ```no_run
/// # async fn run<F>(pool: sqlx::PgPool, embed: F::Step) -> Result<(), Box<dyn std::error::Error>>
/// # where F: pgflow_runtime::flow::StepQueued<State = ()> {
/// # use pgflow_runtime as pgflow;
/// use pgflow::worker::StepWorker;
///
/// StepWorker::<F>::all()
///     .concurrency(32)
///     .step(embed, |worker| worker.concurrency(2))
///     .run(&pool)
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "workers do nothing until they are started or run"]
pub struct StepWorkers<F> {
    workers: Vec<Builder>,
    settings: Settings,
    shutdown_on: Option<Request>,
    flow: PhantomData<fn() -> F>,
}

impl<F> StepWorkers<F> {
    pub(crate) fn of(workers: Vec<Builder>) -> Self {
        Self {
            workers,
            settings: Settings::default(),
            shutdown_on: None,
            flow: PhantomData,
        }
    }

    option_functions!(settings, shutdown_on);

    /// Sets options of one step's worker: `set` returns the worker that it is given, with these
    /// options.
    ///
    /// Only options count: the worker stays the one of this step, an `F::Step`, with the state that
    /// all share.
    pub fn step<S>(mut self, step: S, set: impl FnOnce(StepWorker<F>) -> StepWorker<F>) -> Self
    where
        F: Flow,
        F::Step: AcceptsStep<S, F>,
    {
        let step = F::Step::accept(step).index();
        let of_step = |builder: &&mut Builder| builder.step == Some(step);
        if let Some(builder) = self.workers.iter_mut().find(of_step) {
            let given = StepWorker::of(Builder {
                handlers: Arc::clone(&builder.handlers),
                step: builder.step,
                settings: mem::take(&mut builder.settings),
                shutdown_on: builder.shutdown_on.take(),
            });
            let set = set(given).into_builder();
            builder.settings = set.settings;
            builder.shutdown_on = set.shutdown_on;
        }
        self
    }

    /// Starts the workers one after the other and returns once all are registered; they then serve
    /// in the background. When one can't start, those that did are shut down before the error is
    /// returned.
    ///
    /// Installs no signal handlers: use the handle, or [`shutdown_on`](Self::shutdown_on).
    pub async fn start(self, pool: &PgPool) -> Result<WorkersHandle, StartupError> {
        self.into_group().start(pool).await.map(WorkersHandle::new)
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
    pub async fn run(self, pool: &PgPool) -> Result<(), WorkerError> {
        self.into_group().run(pool).await
    }

    pub(crate) fn into_group(self) -> Group {
        let members = self.workers.into_iter().map(|mut builder| {
            builder.settings = builder.settings.or(&self.settings);
            builder
        });
        Group::new(members.collect(), self.shutdown_on)
    }
}

impl<F> fmt::Debug for StepWorkers<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepWorkers")
            .field("workers", &self.workers)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
