//! Connections that still answer, and have turned bad: each is closed, and the call made on
//! another.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pgflow::client::Client;
use pgflow::operations;
use pgflow::prelude::*;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor, PgPool};
use uuid::Uuid;

use super::backends::{connections, terminate, until_listening};
use super::{DEADLINE, in_time, probe::Probe, start};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

struct Short;

#[flow(input = u32, state = Probe)]
impl Short {
    #[step]
    async fn double(input: u32, state: &Probe) -> StepResult<u32> {
        state.note("runs");
        Ok(input * 2)
    }
}

const CONNECTIONS: u32 = 4;

fn pool() -> PgPoolOptions {
    PgPoolOptions::new()
        .min_connections(CONNECTIONS)
        .max_connections(CONNECTIONS)
}

fn options(database: &TestDb, name: &str) -> PgConnectOptions {
    let options: PgConnectOptions = database.url.parse().unwrap();
    options.application_name(name)
}

/// Does something to every session of the pool.
async fn spoil(pool: &PgPool, sql: &'static str) {
    let mut taken = Vec::new();
    for _ in 0..CONNECTIONS {
        taken.push(in_time(pool.acquire()).await.unwrap());
    }
    for connection in &mut taken {
        // One of them ends with an error, on purpose.
        let _ = connection.execute(sql).await;
    }
}

async fn assert_goes_on_after(sql: &'static str, name: &str) {
    let database = TestDb::new().await;
    let pool = pool().connect_with(options(&database, name)).await.unwrap();
    // Callers meet them, too.
    let client = Client::new(pool.clone());
    // Its start meets such connections, too.
    spoil(&pool, sql).await;
    let worker = start::<Short>(&pool, Probe::open()).await;
    for round in 0..3 {
        let run = client.start::<Short>(&round).await.unwrap();
        run.snapshot().await.unwrap();
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.double, round * 2);
        spoil(&pool, sql).await;
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
    pool.close().await;
    eventually(DEADLINE, "all connections are closed", async || {
        (connections(&database, name).await == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn sessions_that_became_read_only_are_replaced() {
    assert_goes_on_after("set default_transaction_read_only = on", "read only").await;
}

#[tokio::test]
async fn sessions_in_a_failed_transaction_are_replaced() {
    assert_goes_on_after("begin; select 1 / 0", "failed").await;
}

#[tokio::test]
async fn sessions_that_lost_their_statements_are_replaced() {
    assert_goes_on_after("deallocate all", "no statements").await;
}

#[tokio::test]
async fn operators_meet_them_too() {
    let database = TestDb::new().await;
    let named = options(&database, "operator");
    let pool = pool().connect_with(named).await.unwrap();
    let worker = start::<Short>(&database.pool, Probe::open()).await;
    let short = ["short".to_owned()];
    for sql in [
        "set default_transaction_read_only = on",
        "begin; select 1 / 0",
        "deallocate all",
    ] {
        spoil(&pool, sql).await;
        let functions = operations::functions(&pool).await.expect(sql);
        assert_eq!(functions.len(), 1);
        spoil(&pool, sql).await;
        let listed = operations::list(&pool, None, false).await.expect(sql);
        assert_eq!(listed.len(), 1);
        spoil(&pool, sql).await;
        operations::disable(&pool, &short, None).await.expect(sql);
        spoil(&pool, sql).await;
        operations::enable(&pool, &short).await.expect(sql);
        spoil(&pool, sql).await;
        let requeued = operations::requeue_stalled_tasks(&pool).await.expect(sql);
        assert_eq!(requeued, 0);
    }
    worker.stop().await.unwrap();
}

async fn last_heartbeat(pool: &PgPool, worker_id: Uuid) -> String {
    sqlx::query_scalar("select last_heartbeat_at::text from pgflow.workers where worker_id = $1")
        .bind(worker_id)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_connection_for_heartbeats_that_became_read_only_is_replaced() {
    let database = TestDb::new().await;
    let is_read_only = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_read_only);
    let pool = pool()
        .after_connect(move |connection, _| {
            let is_read_only = seen.load(Ordering::SeqCst);
            Box::pin(async move {
                if is_read_only {
                    connection
                        .execute("set default_transaction_read_only = on")
                        .await?;
                }
                Ok(())
            })
        })
        .connect_with(options(&database, "demoted"))
        .await
        .unwrap();
    let worker = start::<Short>(&pool, Probe::open()).await;
    let first = until_listening(&database, "demoted", None).await;
    is_read_only.store(true, Ordering::SeqCst);
    terminate(&database, first).await;
    let demoted = until_listening(&database, "demoted", Some(first)).await;
    is_read_only.store(false, Ordering::SeqCst);
    until_listening(&database, "demoted", Some(demoted)).await;
    let before = last_heartbeat(&database.pool, worker.worker_id()).await;
    eventually(Duration::from_secs(20), "the next heartbeat", async || {
        (last_heartbeat(&database.pool, worker.worker_id()).await != before).then_some(())
    })
    .await;
    worker.stop().await.unwrap();
}
