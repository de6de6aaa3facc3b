//! A database that is away for 10 seconds.

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::worker::WorkersHandle;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};

use super::backends::{named_pool, until_listening};
use super::{DEADLINE, capture::capture, probe::Probe};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

const SECONDS: f64 = 10.0;

mod plain {
    use super::*;

    pub(super) struct Plain;

    #[flow(input = u32, state = Probe)]
    impl Plain {
        #[step]
        async fn wait(input: u32, state: &Probe) -> StepResult<u32> {
            state.pass("waits").await;
            state.note("done");
            Ok(input + 1)
        }

        #[step(depends_on = [wait])]
        async fn after(wait: u32) -> StepResult<u32> {
            Ok(wait + 1)
        }
    }
}

mod queued {
    use super::*;

    pub(super) struct Queued;

    #[flow(input = u32, state = Probe, with_step_queues)]
    impl Queued {
        #[step]
        async fn wait(input: u32, state: &Probe) -> StepResult<u32> {
            state.pass("waits").await;
            state.note("done");
            Ok(input + 1)
        }

        #[step(depends_on = [wait])]
        async fn after(wait: u32) -> StepResult<u32> {
            Ok(wait + 1)
        }
    }
}

use plain::Plain;
use queued::Queued;

/// The server's administrator, in another database.
struct Admin {
    connection: PgConnection,
    database: String,
}

impl Admin {
    async fn of(database: &TestDb) -> Self {
        let options: PgConnectOptions = database.url.parse().unwrap();
        Self {
            connection: options.database("postgres").connect().await.unwrap(),
            database: database.name.clone(),
        }
    }

    async fn allow_connections(&mut self, allow: bool) {
        let alter = format!("alter database {} allow_connections {allow}", self.database);
        sqlx::raw_sql(AssertSqlSafe(alter))
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    async fn cut_all_connections(&mut self) {
        sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1")
            .bind(&self.database)
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    async fn clock(&mut self) -> f64 {
        sqlx::query_scalar("select extract(epoch from clock_timestamp())::float8")
            .fetch_one(&mut self.connection)
            .await
            .unwrap()
    }

    async fn until(&mut self, time: f64) {
        eventually(DEADLINE * 3, "the outage is over", async || {
            (self.clock().await >= time).then_some(())
        })
        .await;
    }
}

async fn start_workers(pool: &PgPool, probe: &Probe) -> WorkersHandle {
    Workers::new(pool)
        .add(FlowWorker::<Plain>::with_state(probe.clone()).concurrency(3))
        .add(FlowWorker::<Plain>::with_state(probe.clone()).concurrency(3))
        .add(StepWorker::<Queued>::all_with_state(probe.clone()))
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn workers_outlast_it_lose_nothing_and_do_not_spin() {
    let lines = capture();
    let database = TestDb::new().await;
    let pool = named_pool(&database, "outage", 5);
    let probe = Probe::closed();
    let workers = start_workers(&pool, &probe).await;
    let pid = until_listening(&database, "outage", None).await;
    let client = Client::new(database.pool.clone());
    let (mut plain, mut queued) = (Vec::new(), Vec::new());
    for input in 0..6 {
        plain.push(client.start::<Plain>(&input).await.unwrap());
    }
    for input in 0..4 {
        queued.push(client.start::<Queued>(&input).await.unwrap());
    }
    probe.until_count(10).await;

    let mut admin = Admin::of(&database).await;
    admin.allow_connections(false).await;
    admin.cut_all_connections().await;
    let since = admin.clock().await;
    probe.let_all_go();
    probe.until_count(20).await;
    admin.until(since + SECONDS).await;
    admin.allow_connections(true).await;

    for (input, run) in (0..).zip(&plain) {
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.after, input + 2);
    }
    for (input, run) in (0..).zip(&queued) {
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.after, input + 2);
    }
    let attempts: Vec<i32> =
        sqlx::query_scalar("select distinct attempts_count from pgflow.step_tasks")
            .fetch_all(&database.pool)
            .await
            .unwrap();
    assert_eq!(attempts, [1], "an outage is no failed attempt");
    // The same workers live, and are woken again.
    until_listening(&database, "outage", Some(pid)).await;
    eventually(DEADLINE, "all workers live", async || {
        let live: i64 = sqlx::query_scalar(
            "select count(*) from pgflow.live_workers where worker_id = any ($1)",
        )
        .bind(workers.worker_ids())
        .fetch_one(&database.pool)
        .await
        .unwrap();
        (live == 4).then_some(())
    })
    .await;
    workers.stop().await.unwrap();
    admin.connection.close().await.unwrap();

    // With 100 ms to 5 s between two tries each worker fails some 7 times in 10 s; one that spins,
    // many thousand times.
    for failed in ["a database call failed", "a heartbeat failed"] {
        let tries = lines.lines(failed).len();
        assert!((1..=4 * 20).contains(&tries), "{tries} times: {failed}");
    }
    assert_invariants(&database.pool).await;
}
