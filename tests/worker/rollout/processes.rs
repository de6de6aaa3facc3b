//! The supervisor of production, which restarts its process whenever it ends.

use std::pin::Pin;

use pgflow::startup::StartupError;
use pgflow::worker::WorkersHandle;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::{Effects, PACE};
use crate::support::TestDb;

type Starting = Pin<Box<dyn Future<Output = Result<WorkersHandle, StartupError>> + Send>>;

/// Starts the workers of a process of some build.
pub(super) type Start = fn(PgPool, Effects) -> Starting;

/// The results of the starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Starts {
    pub(super) done: usize,
    pub(super) refused: usize,
}

/// Starts a process, and again whenever it has ended or could not start.
pub(super) struct Supervisor {
    stop: CancellationToken,
    refused: watch::Receiver<usize>,
    task: JoinHandle<Starts>,
}

impl Supervisor {
    /// The process has a pool of its own.
    pub(super) async fn of(database: &TestDb, effects: &Effects, start: Start) -> Self {
        let stop = CancellationToken::new();
        let pool = PgPoolOptions::new().max_connections(6);
        let pool = pool.connect(&database.url).await.unwrap();
        let (refusals, refused) = watch::channel(0);
        let task = tokio::spawn(supervise(
            pool,
            effects.clone(),
            start,
            stop.clone(),
            refusals,
        ));
        Self {
            stop,
            refused,
            task,
        }
    }

    /// Several supervisors, each with a process.
    pub(super) async fn several(
        count: usize,
        database: &TestDb,
        effects: &Effects,
        start: Start,
    ) -> Vec<Self> {
        let mut supervisors = Vec::new();
        for _ in 0..count {
            supervisors.push(Self::of(database, effects, start).await);
        }
        supervisors
    }

    /// Waits until a start was refused.
    pub(super) async fn until_refused(&mut self) {
        let refused = self.refused.wait_for(|&refused| refused > 0).await;
        refused.expect("it supervises until it is stopped");
    }

    /// Stops the process, and starts it no more.
    pub(super) async fn stop(self) -> Starts {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

async fn supervise(
    pool: PgPool,
    effects: Effects,
    start: Start,
    stop: CancellationToken,
    refusals: watch::Sender<usize>,
) -> Starts {
    let mut starts = Starts::default();
    let mut pace = interval(PACE);
    while stop.run_until_cancelled(pace.tick()).await.is_some() {
        match start(pool.clone(), effects.clone()).await {
            Ok(workers) => {
                starts.done += 1;
                stop.run_until_cancelled(workers.stopped()).await;
                workers.stop().await.unwrap();
            }
            Err(error) => {
                assert!(is_disabled(&error), "{error}");
                starts.refused += 1;
                refusals.send_replace(starts.refused);
            }
        }
    }
    starts
}

/// Returns whether a start was refused because its function is out of service.
pub(super) fn is_disabled(error: &StartupError) -> bool {
    matches!(error, StartupError::FunctionDisabled(_))
}
