//! The life of a registered worker.

use std::{error::Error, sync::Arc, time::Duration};

use sqlx::PgPool;
use tokio::{
    runtime::Handle,
    sync::mpsc,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, info, warn};
use uuid::Uuid;

use super::{
    WorkerError,
    attempts::Attempts,
    budget::Budget,
    claimer,
    completer::Completer,
    executor::{Busy, Executor},
    handlers::Handlers,
    health::Vitals,
    hub,
    options::WorkerOptions,
    recorder::{Database, Recorder},
    returner,
    shutdown::Stop,
    wakeup::Wakeup,
};
use crate::sql::{
    limit::within,
    worker::{mark_worker_draining, mark_worker_stopped},
};

/// The time that a shutdown may take in addition to its timeout: results of handlers that ended at
/// the last moment still reach the database.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The longest time to report that a worker drains or has stopped.
const MARK: Duration = Duration::from_secs(30);

/// The number of results that may wait while the database records others: as many as the next call
/// takes.
const MOST_RESULTS: usize = 100;

/// The state that the parts of one worker share.
pub(crate) struct Shared {
    pub(crate) pool: PgPool,
    pub(crate) worker_id: Uuid,
    pub(crate) queue_name: String,
    pub(crate) handlers: Arc<dyn Handlers>,
    pub(crate) options: WorkerOptions,
    pub(crate) wakeup: Wakeup,
    pub(crate) attempts: Attempts,
    pub(crate) budget: Arc<Budget>,
    pub(crate) stop: Stop,
    pub(crate) vitals: Arc<Vitals>,
    /// The runtime of heartbeats and notifications.
    pub(crate) thread: Handle,
}

impl Shared {
    pub(crate) fn flow(&self) -> &'static str {
        self.handlers.definition().slug
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("worker_id", &self.worker_id)
            .finish_non_exhaustive()
    }
}

/// Claims, runs and records until the worker is asked to stop; then drains. Dropping the future
/// ends everything at once.
pub(crate) async fn serve(shared: Arc<Shared>) -> Result<(), WorkerError> {
    let (sender, receiver) = mpsc::channel(shared.options.concurrency.max(MOST_RESULTS));
    let (unstarted, inbox) = mpsc::unbounded_channel();
    let returner = spawn(returner::run(Arc::clone(&shared), inbox));
    let busy = Busy::default();
    let recorder = Recorder::new(Database::new(&shared.pool), shared.wakeup.clone());
    let completer = spawn(Completer::new(Arc::clone(&recorder), receiver, busy.clone()).run());
    // Before the first claim: what becomes ready after that is announced.
    let attendance = hub::attend(&shared);

    let mut executor = Executor::new(Arc::clone(&shared), busy, sender, unstarted);
    claimer::run(&shared, &mut executor).await;

    let deadline = shared.stop.deadline(shared.options.shutdown_timeout);
    info!(timeout = ?deadline.saturating_duration_since(Instant::now()), "worker drains");
    // Seen by whoever asks who serves the queue, while handlers still run.
    let draining = (!executor.is_idle()).then(|| {
        let shared = Arc::clone(&shared);
        spawn(async move { mark_draining(&shared).await })
    });
    // Takes the executor: with it go the last senders, and the completer and the returner end when
    // all is recorded.
    executor.drain(deadline).await;
    // Side by side: a handler that blocks its thread keeps both from ending, and costs the grace
    // only once.
    tokio::join!(flush(completer, deadline), flush(returner, deadline));
    drop(draining);
    // Before the row says so: a worker that has stopped must not be found missing.
    drop(attendance);
    mark_stopped(&shared).await;
    let result = match (recorder.unrecorded(), shared.stop.result()) {
        (0, result) => result,
        // Says more than that the pool was closed.
        (results, Ok(()) | Err(WorkerError::PoolClosed(_))) => {
            Err(WorkerError::ResultsLost { results })
        }
        (_, result) => result,
    };
    info!(ok = result.is_ok(), "worker stopped");
    result
}

fn spawn(part: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(part.in_current_span()))
}

async fn flush(part: AbortOnDropHandle<()>, deadline: Instant) {
    let deadline = deadline.max(Instant::now() + GRACE);
    match timeout_at(deadline, part).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            warn!(%error, "a part of the worker ended early; stall recovery will repeat what it did not record");
        }
        Err(_elapsed) => {
            warn!(
                "results could not be recorded, or tasks not given back, in time; recovery will repeat the tasks"
            );
        }
    }
}

async fn mark_draining(shared: &Shared) {
    let marked = within(&shared.pool, MARK, async |connection| {
        mark_worker_draining(connection, shared.worker_id).await
    });
    if let Err(error) = marked.await {
        warn!(
            error = &error as &dyn Error,
            "the worker could not be marked as draining, it seems to run until it has stopped"
        );
    }
}

async fn mark_stopped(shared: &Shared) {
    let marked = within(&shared.pool, MARK, async |connection| {
        mark_worker_stopped(connection, shared.worker_id).await
    });
    match timeout(GRACE, marked).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(
            error = &error as &dyn Error,
            "the worker could not be marked as stopped, its heartbeat will be missed"
        ),
        Err(_elapsed) => {
            warn!(
                "the worker could not be marked as stopped in time, its heartbeat will be missed"
            );
        }
    }
}
