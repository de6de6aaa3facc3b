//! Connections that are lost while a worker runs.

use std::time::Duration;

use pgflow::client::Client;
use pgflow::prelude::*;
use sqlx::{PgPool, postgres::PgPoolOptions};

use super::{DEADLINE, lock_table, probe::Probe, until_held_up, worker};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

/// Three steps in a row, the first of which waits at the probe.
struct Line;

#[flow(input = u32, state = Probe, timeout = "3s")]
impl Line {
    #[step]
    async fn first(input: u32, state: &Probe) -> StepResult<u32> {
        state.pass("first").await;
        Ok(input + 1)
    }

    #[step(depends_on = [first])]
    async fn second(first: u32) -> StepResult<u32> {
        Ok(first + 1)
    }

    #[step(depends_on = [second])]
    async fn third(second: u32) -> StepResult<u32> {
        Ok(second + 1)
    }
}

/// A pool whose connections can be told from those of the test.
async fn worker_pool(database: &TestDb) -> PgPool {
    let options: sqlx::postgres::PgConnectOptions = database.url.parse().unwrap();
    PgPoolOptions::new()
        .max_connections(5)
        .connect_with(options.application_name("worker"))
        .await
        .unwrap()
}

async fn cut_connections(database: &TestDb) -> i64 {
    sqlx::query_scalar(
        "select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity \
         where application_name = 'worker' and datname = current_database()) cut",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_completion_that_is_cut_off_is_made_again() {
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let pool = worker_pool(&database).await;
    let worker = worker::<Line>(probe.clone()).start(&pool).await.unwrap();
    let client = Client::new(database.pool.clone());
    let mut runs = Vec::new();
    for input in 0..5 {
        runs.push(client.start::<Line>(&input).await.unwrap());
    }
    probe.until_count(5).await;

    let block = lock_table(&database.pool, "pgflow.runs").await;
    probe.let_all_go();
    until_held_up(&database.pool, "complete_tasks").await;
    assert!(cut_connections(&database).await > 0);
    block.rollback().await.unwrap();

    for (input, run) in (0..5).zip(&runs) {
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.third, input + 3);
    }
    let attempts: Vec<i32> =
        sqlx::query_scalar("select distinct attempts_count from pgflow.step_tasks")
            .fetch_all(&database.pool)
            .await
            .unwrap();
    assert_eq!(attempts, [1], "a lost connection is no failed attempt");
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn nothing_is_lost_when_connections_are_cut_again_and_again() {
    let database = TestDb::new().await;
    let probe = Probe::open();
    let pool = worker_pool(&database).await;
    let worker = worker::<Line>(probe.clone()).start(&pool).await.unwrap();
    let client = Client::new(database.pool.clone());
    let mut runs = Vec::new();
    for cut in 0..10 {
        for input in 0..10 {
            runs.push((input, client.start::<Line>(&input).await.unwrap()));
        }
        // So that each cut hits a worker that has connected again.
        eventually(
            DEADLINE,
            format!("the worker works after cut {cut}"),
            async || (probe.seen().len() > cut * 5).then_some(()),
        )
        .await;
        cut_connections(&database).await;
    }
    // A claim whose answer was cut off is found by stall recovery: timeout 3 s, 30 s more, and up
    // to 18 s until somebody looks.
    let patience = Duration::from_secs(90);
    for (input, run) in &runs {
        let output = run.wait().timeout(patience).await.unwrap();
        assert_eq!(output.third, input + 3);
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

/// Claims and completions keep their connections for the next call, but not for long, and not the
/// last ones.
#[tokio::test]
async fn a_worker_without_work_holds_no_connection_of_its_pool() {
    let database = TestDb::new().await;
    let pool = worker_pool(&database).await;
    let probe = Probe::open();
    let worker = worker::<Line>(probe).start(&pool).await.unwrap();
    let client = Client::new(database.pool.clone());
    for input in 0..10 {
        let run = client.start::<Line>(&input).await.unwrap();
        run.wait().timeout(DEADLINE).await.unwrap();
    }
    eventually(DEADLINE, "all connections are back", async || {
        (pool.num_idle() == pool.size() as usize).then_some(())
    })
    .await;
    worker.stop().await.unwrap();
    pool.close().await;
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_pool_of_one_connection_is_shared_by_all_calls() {
    let database = TestDb::new().await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect(&database.url)
        .await
        .unwrap();
    let worker = worker::<Line>(Probe::open()).start(&pool).await.unwrap();
    let client = Client::new(pool.clone());
    let mut runs = Vec::new();
    for input in 0..20 {
        runs.push(client.start::<Line>(&input).await.unwrap());
    }
    for run in runs {
        run.wait().timeout(DEADLINE).await.unwrap();
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}
