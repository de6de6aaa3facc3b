//! A worker through the whole life of its process: it returns after its function was out of
//! service, while other workers of the process serve.

use std::{error::Error, sync::Arc, time::Duration};

use sqlx::PgPool;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span, debug, error, info, warn};
use uuid::Uuid;

use super::{
    Shared, WorkerError, WorkerState,
    builder::Builder,
    health::Place,
    requests::forward,
    serve::{GRACE, serve},
    shutdown::Stop,
};
use crate::{
    sql::{limit::within, retry::jittered, worker::disabled},
    startup::{FunctionDisabled, StartupError, Target},
};

/// The interval at which a worker whose function is out of service checks it again.
const LOOK: Duration = Duration::from_secs(2);
/// The longest time for such a check.
const LIMIT: Duration = Duration::from_secs(5);

/// The workers of a process that serve right now.
#[derive(Debug, Clone, Default)]
pub(super) struct Crew(Arc<watch::Sender<usize>>);

/// One that serves, until this is dropped.
#[derive(Debug)]
pub(super) struct Shift(Crew);

impl Crew {
    pub(super) fn enter(&self) -> Shift {
        self.0.send_modify(|serving| *serving += 1);
        Shift(self.clone())
    }

    /// Resolves when none serves.
    async fn deserted(&self) {
        // The sender is kept here.
        let _ = self.0.subscribe().wait_for(|serving| *serving == 0).await;
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.0.0.send_modify(|serving| *serving -= 1);
    }
}

/// A registration.
pub(super) struct Registered {
    shared: Arc<Shared>,
    span: Span,
    shift: Shift,
}

impl Registered {
    pub(super) fn worker_id(&self) -> Uuid {
        self.shared.worker_id
    }
}

/// A worker of a process.
pub(super) struct Member {
    builder: Builder,
    pool: PgPool,
    /// Of the process, and of this worker alone.
    stop: Stop,
    place: Arc<Place>,
    crew: Crew,
    _request: Option<AbortOnDropHandle<()>>,
}

/// The action after the end of a registration.
enum Next {
    End(Result<(), WorkerError>),
    /// The worker's result should it not come back.
    Wait(Result<(), WorkerError>),
}

impl Member {
    pub(super) fn new(
        mut builder: Builder,
        pool: &PgPool,
        all: &Stop,
        place: Arc<Place>,
        crew: Crew,
    ) -> Self {
        let stop = all.child();
        let request = builder.shutdown_on.take();
        Self {
            builder,
            pool: pool.clone(),
            _request: request.map(|request| forward(request, stop.clone())),
            stop,
            place,
            crew,
        }
    }

    pub(super) fn target(&self) -> Target {
        self.builder.target()
    }

    /// Registers the worker. A registration in progress may come to its end after a request to
    /// stop, so that the worker does not seem to live.
    pub(super) async fn register(&self, sibling: Option<Uuid>) -> Result<Registered, StartupError> {
        let shift = self.crew.enter();
        let stop = self.stop.child();
        // Boxed: of all that starting takes, a caller's future would hold the most, for as long
        // as it is.
        let registered = Box::pin(self.builder.register(&self.pool, sibling, stop.clone()));
        let registered = self.stop.within(GRACE, registered).await;
        let (shared, span) = registered.unwrap_or(Err(StartupError::ShutDown))?;
        self.place
            .serves(shared.worker_id, stop, Arc::clone(&shared.vitals));
        Ok(Registered {
            shared,
            span,
            shift,
        })
    }

    /// Serves until the worker is asked to stop, or fails permanently.
    pub(super) async fn live(self, mut registered: Registered) -> Result<(), WorkerError> {
        loop {
            let Registered {
                shared,
                span,
                shift,
            } = registered;
            let stop = shared.stop.clone();
            let ended = serve(shared).instrument(span).await;
            let next = self.after(ended, &stop).await;
            drop(shift);
            let otherwise = match next {
                Next::End(result) => return self.end(result),
                Next::Wait(otherwise) => otherwise,
            };
            match self.wait(otherwise).await {
                Ok(back) => registered = back,
                Err(result) => return self.end(result),
            }
        }
    }

    /// Waits until the function is in service, then serves: for one that could not start.
    pub(super) async fn live_later(self, error: FunctionDisabled) -> Result<(), WorkerError> {
        let is_fenced = error.is_fenced;
        let otherwise = Err(WorkerError::Startup(error.into()));
        let otherwise = if is_fenced { Ok(()) } else { otherwise };
        match self.wait(otherwise).await {
            Ok(registered) => self.live(registered).await,
            Err(result) => self.end(result),
        }
    }

    fn end(&self, result: Result<(), WorkerError>) -> Result<(), WorkerError> {
        let reason = result.as_ref().err().map(ToString::to_string);
        self.place.is(WorkerState::Stopped, reason);
        result
    }

    async fn after(&self, ended: Result<(), WorkerError>, stop: &Stop) -> Next {
        if self.stop.is_requested() {
            return Next::End(ended);
        }
        match ended {
            Err(error @ WorkerError::UnsupportedWork { .. }) => {
                self.out_of_service(&error, WorkerState::Disabled);
                Next::Wait(Err(error))
            }
            Err(error) => Next::End(Err(error)),
            Ok(()) => match self.service().await {
                Some(disabled) => {
                    self.out_of_service(&disabled, state_of(&disabled));
                    Next::Wait(Ok(()))
                }
                // The fence may have ended before the worker had drained.
                None if stop.deprecated().is_some_and(is_of_fence) => {
                    self.place.is(WorkerState::Fenced, None);
                    Next::Wait(Ok(()))
                }
                None => Next::End(Ok(())),
            },
        }
    }

    /// Logs that the worker did not start, but may later.
    pub(super) fn report_absence(&self, disabled: &FunctionDisabled) {
        self.out_of_service(disabled, state_of(disabled));
    }

    fn out_of_service(&self, why: &(impl Error + 'static), state: WorkerState) {
        let target = self.builder.target();
        warn!(
            flow = target.definition.slug,
            step = target.step_slug(),
            reason = why as &dyn Error,
            "the worker is out of service; it waits while others of this process serve"
        );
        self.place.is(state, Some(why.to_string()));
    }

    /// Returns why the function is out of service, if the database says that it is.
    async fn service(&self) -> Option<FunctionDisabled> {
        let name = self.builder.options().function_name;
        let asked = within(&self.pool, LIMIT, async |connection| {
            disabled(connection, &name).await
        });
        // The wait for a connection has the pool's own limit.
        match timeout(LIMIT, asked).await {
            Ok(Ok(disabled)) => disabled.map(|disabled| FunctionDisabled {
                function_name: name,
                since: disabled.since,
                reason: disabled.reason,
                is_fenced: disabled.is_fenced,
            }),
            Ok(Err(error)) => {
                debug!(
                    error = &error as &dyn Error,
                    "could not check whether the function is in service"
                );
                None
            }
            Err(_elapsed) => None,
        }
    }

    /// Returns a new registration, or how the worker ended because it was asked to stop, none of
    /// the process serves any more, or it can't start.
    async fn wait(
        &self,
        otherwise: Result<(), WorkerError>,
    ) -> Result<Registered, Result<(), WorkerError>> {
        let target = self.builder.target();
        let (flow, step) = (target.definition.slug, target.step_slug());
        loop {
            tokio::select! {
                () = self.stop.requested() => return Err(otherwise),
                () = self.crew.deserted() => return Err(otherwise),
                () = sleep(jittered(LOOK)) => {}
            }
            if let Some(disabled) = self.service().await {
                self.place
                    .is(state_of(&disabled), Some(disabled.to_string()));
                continue;
            }
            match self.register(None).await {
                Ok(registered) => {
                    info!(flow, step, worker_id = %registered.worker_id(), "the worker is in service again");
                    return Ok(registered);
                }
                Err(StartupError::ShutDown) => return Err(otherwise),
                Err(StartupError::FunctionDisabled(disabled)) => {
                    self.place
                        .is(state_of(&disabled), Some(disabled.to_string()));
                }
                Err(
                    error @ (StartupError::Connect(_)
                    | StartupError::Database(_)
                    | StartupError::DrainTimeout { .. }),
                ) => debug!(
                    flow,
                    step,
                    error = &error as &dyn Error,
                    "the worker could not start again, the next try follows"
                ),
                Err(error) => {
                    error!(
                        flow,
                        step,
                        error = &error as &dyn Error,
                        "the worker can't start again; the others of this process go on"
                    );
                    return Err(Err(error.into()));
                }
            }
        }
    }
}

fn state_of(disabled: &FunctionDisabled) -> WorkerState {
    if disabled.is_fenced {
        WorkerState::Fenced
    } else {
        WorkerState::Disabled
    }
}

/// The fence says so of itself: see `fence_worker_functions`.
fn is_of_fence(reason: &str) -> bool {
    reason == "fenced" || reason.starts_with("fenced: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_crew_is_deserted_when_the_last_shift_ends() {
        let crew = Crew::default();
        let (first, second) = (crew.enter(), crew.enter());
        drop(first);
        let deserted = crew.deserted();
        tokio::pin!(deserted);
        assert!(futures_util::poll!(&mut deserted).is_pending());
        drop(second);
        deserted.await;
    }

    #[test]
    fn only_a_fence_is_taken_for_one() {
        assert!(is_of_fence("fenced") && is_of_fence("fenced: release 42"));
        assert!(!is_of_fence("fencedale moves") && !is_of_fence(""));
    }
}
