//! Workers say that they live, whatever their handlers and connections do, and do what they hear.

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::worker::WorkerError;
use sqlx::PgPool;
use uuid::Uuid;

use super::backends::{listening, named_pool, stop_process, terminate, until_listening};
use super::{DEADLINE, capture::capture, in_time, probe::Probe, run_sql, start, worker};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

/// A step that keeps a connection of the worker's pool until the probe lets it go, or the worker
/// stops.
struct Greedy;

#[flow(input = (), state = Probe)]
impl Greedy {
    #[step]
    async fn keep(state: &Probe, ctx: &StepContext) -> StepResult<()> {
        let _kept = ctx.pool().acquire().await?;
        tokio::select! {
            () = state.pass("keeps") => {}
            () = ctx.cancelled() => state.note("told to stop"),
        }
        Ok(())
    }
}

async fn last_heartbeat(pool: &PgPool, worker_id: Uuid) -> String {
    sqlx::query_scalar("select last_heartbeat_at::text from pgflow.workers where worker_id = $1")
        .bind(worker_id)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn until_heartbeats(pool: &PgPool, worker_id: Uuid, count: usize) {
    for _ in 0..count {
        let before = last_heartbeat(pool, worker_id).await;
        eventually(DEADLINE, "the next heartbeat", async || {
            (last_heartbeat(pool, worker_id).await != before).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn it_goes_on_while_handlers_use_up_the_pool() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "greedy", 2);
    let probe = Probe::closed();
    let worker = start::<Greedy>(&pool, probe.clone()).await;
    until_listening(&database, "greedy", None).await;
    let client = Client::new(database.pool.clone());
    let mut runs = Vec::new();
    for _ in 0..2 {
        runs.push(client.start::<Greedy>(&()).await.unwrap());
    }
    probe.until_count(2).await;
    assert!(pool.try_acquire().is_none());
    until_heartbeats(&database.pool, worker.worker_id(), 2).await;
    // Also when the connection that carries them is lost.
    let pid = until_listening(&database, "greedy", None).await;
    terminate(&database, pid).await;
    until_heartbeats(&database.pool, worker.worker_id(), 1).await;
    assert!(pool.try_acquire().is_none());

    probe.let_all_go();
    for run in runs {
        run.wait().timeout(DEADLINE).await.unwrap();
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_connection_that_hangs_is_gone_round_and_replaced() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "hanging", 3);
    let worker = start::<Greedy>(&pool, Probe::open()).await;
    let pid = until_listening(&database, "hanging", None).await;
    let stopped = stop_process(pid);
    until_heartbeats(&database.pool, worker.worker_id(), 1).await;
    eventually(DEADLINE, "another connection carries them", async || {
        let others = listening(&database, "hanging").await;
        others.iter().any(|&other| other != pid).then_some(())
    })
    .await;
    drop(stopped);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_deprecated_worker_says_why_it_stops() {
    let lines = capture();
    let database = TestDb::new().await;
    let worker = start::<Greedy>(&database.pool, Probe::open()).await;
    let worker_id = worker.worker_id();
    run_sql(
        &database.pool,
        "select pgflow.deprecate_workers(array['greedy'], 'build 12 replaces it')",
    )
    .await;
    in_time(worker.join()).await.unwrap();
    let line = lines.line("worker is deprecated");
    assert!(line.contains("INFO"), "{line}");
    assert!(line.contains(&format!("worker_id={worker_id}")), "{line}");
    assert!(line.contains("reason=\"build 12 replaces it\""), "{line}");
}

#[tokio::test]
async fn a_worker_whose_row_says_that_it_stopped_fails_and_another_of_its_process_does_not() {
    let database = TestDb::new().await;
    let probe = Probe::closed();
    // Its only slot is taken, so no claim finds out.
    let gone = worker::<Greedy>(probe.clone())
        .concurrency(1)
        .start(&database.pool)
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    client.start::<Greedy>(&()).await.unwrap();
    probe.until_seen("keeps").await;
    let other = start::<Greedy>(&database.pool, probe.clone()).await;
    sqlx::query("update pgflow.workers set stopped_at = now() where worker_id = $1")
        .bind(gone.worker_id())
        .execute(&database.pool)
        .await
        .unwrap();
    probe.until_seen("told to stop").await;
    let error = in_time(gone.join()).await.unwrap_err();
    assert!(matches!(error, WorkerError::NotRegistered(_)), "{error}");
    until_heartbeats(&database.pool, other.worker_id(), 1).await;
    other.stop().await.unwrap();
}
