//! Callers with a database of their own, whose connections can be seen and cut.

use std::time::Duration;

use pgflow::client::Client;
use pgflow::worker::{FlowWorker, WorkerHandle};
use pgflow::{Flow, OneQueue};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::support::invariants::assert_invariants;
use crate::support::{TestDb, eventually};

pub(super) const DEADLINE: Duration = Duration::from_secs(20);
/// Looks that far apart find nothing in time: what is seen was heard of.
pub(super) const HOUR: Duration = Duration::from_hours(1);
/// The name of the callers' connections.
const CALLER: &str = "caller";

pub(super) struct Callers {
    pub(super) database: TestDb,
    /// Of the callers alone.
    pub(super) pool: PgPool,
    pub(super) client: Client,
}

impl Callers {
    /// The flow is stored, and no worker runs.
    pub(super) async fn of<F: Flow<State = (), Queues = OneQueue>>(connections: u32) -> Self {
        let database = TestDb::new().await;
        let options: PgConnectOptions = database.url.parse().unwrap();
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .connect_lazy_with(options.application_name(CALLER));
        let callers = Self {
            database,
            client: Client::new(pool.clone()),
            pool,
        };
        callers.work::<F>().await.stop().await.unwrap();
        callers
    }

    /// A worker starts.
    pub(super) async fn work<F: Flow<State = (), Queues = OneQueue>>(&self) -> WorkerHandle {
        FlowWorker::<F>::new()
            .poll_interval(Duration::from_millis(20))
            .start(&self.database.pool)
            .await
            .unwrap()
    }

    /// The worker stops, and every row and message that is left is as it should be.
    pub(super) async fn stop(&self, worker: WorkerHandle) {
        worker.stop().await.unwrap();
        assert_invariants(&self.database.pool).await;
    }

    /// The callers' connections that listen.
    pub(super) async fn lines(&self) -> Vec<i32> {
        sqlx::query_scalar(
            "select pid from pg_stat_activity where application_name = $1 and datname = current_database() and query like 'LISTEN %'",
        )
        .bind(CALLER)
        .fetch_all(&self.database.pool)
        .await
        .unwrap()
    }

    /// Waits until callers listen on one connection, another than `than`.
    pub(super) async fn until_listening(&self, than: Option<i32>) -> i32 {
        let look = async || match self.lines().await[..] {
            [pid] if Some(pid) != than => Some(pid),
            _ => None,
        };
        eventually(DEADLINE, "callers listen", look).await
    }

    pub(super) async fn until_none_listens(&self) {
        let look = async || self.lines().await.is_empty().then_some(());
        eventually(DEADLINE, "the connection is closed", look).await;
    }

    /// Cuts a connection.
    pub(super) async fn terminate(&self, pid: i32) {
        let is_done: bool = sqlx::query_scalar("select pg_terminate_backend($1)")
            .bind(pid)
            .fetch_one(&self.database.pool)
            .await
            .unwrap();
        assert!(is_done);
    }

    /// Cuts the listening connection twice, and once more without waiting for the next one: what
    /// happens from now on happens while there is none.
    pub(super) async fn lose_line(&self) {
        let mut line = self.until_listening(None).await;
        for _ in 0..2 {
            self.terminate(line).await;
            line = self.until_listening(Some(line)).await;
        }
        self.terminate(line).await;
    }
}
