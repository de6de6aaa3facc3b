//! Views `live_workers` and `worker_status`: who lives, and what each worker does.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::mark_worker_stopped::stop;
use crate::support::TestDb;
use crate::support::flows::{
    claim, complete, define, define_with_step_queues, fail, start, step, step_worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{fence, worker_of};

async fn set(pool: &PgPool, worker: Uuid, change: &'static str) {
    let changed = sqlx::query(AssertSqlSafe(format!(
        "update pgflow.workers set {change} where worker_id = $1"
    )))
    .bind(worker)
    .execute(pool)
    .await
    .expect("rows can be changed");
    assert_eq!(changed.rows_affected(), 1);
}

/// The state of each worker and what it has started, oldest worker first.
async fn states(pool: &PgPool) -> Vec<(String, i64)> {
    sqlx::query_as("select state, started_tasks from pgflow.worker_status order by worker_id")
        .fetch_all(pool)
        .await
        .expect("the view can be read")
}

async fn live(pool: &PgPool) -> Vec<Uuid> {
    sqlx::query_scalar("select worker_id from pgflow.live_workers order by worker_id")
        .fetch_all(pool)
        .await
        .expect("the view can be read")
}

#[tokio::test]
async fn a_worker_runs_drains_is_lost_or_has_stopped() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(worker_of(&db.pool, "charge", "orders").await);
    }
    let late = "last_heartbeat_at = clock_timestamp() - interval '5 seconds'";
    let silent = "last_heartbeat_at = clock_timestamp() - interval '6 seconds'";
    let told = "deprecated_at = now()";
    set(&db.pool, ids[1], late).await;
    set(&db.pool, ids[2], told).await;
    set(&db.pool, ids[3], told).await;
    set(&db.pool, ids[3], late).await;
    set(&db.pool, ids[4], silent).await;
    set(&db.pool, ids[5], silent).await;
    set(&db.pool, ids[5], told).await;
    stop(&db.pool, ids[6]).await;
    set(&db.pool, ids[7], told).await;
    set(&db.pool, ids[7], silent).await;
    stop(&db.pool, ids[7]).await;
    let expected = [
        "running", "running", "draining", "draining", "lost", "lost", "stopped", "stopped",
    ];
    assert_eq!(
        states(&db.pool).await,
        expected.map(|state| (state.to_owned(), 0))
    );
    assert_eq!(live(&db.pool).await, ids[..4]);
}

#[tokio::test]
async fn the_tasks_that_count_are_those_that_the_worker_has_started_and_not_ended() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map().max_attempts(2)]).await;
    let one = worker_of(&db.pool, "charge", "orders").await;
    let other = worker_of(&db.pool, "charge", "orders").await;
    start(&db.pool, "orders", json!([1, 2, 3, 4, 5, 6])).await;
    let counts = async || {
        let states = states(&db.pool).await;
        states.iter().map(|(_, tasks)| *tasks).collect::<Vec<_>>()
    };
    assert_eq!(counts().await, [0, 0]);
    let tasks = claim(&db.pool, one, 4).await;
    claim(&db.pool, other, 1).await;
    assert_eq!(counts().await, [4, 1]);
    complete(&db.pool, &tasks[0], json!(1)).await;
    fail(&db.pool, &tasks[1], "again").await;
    assert_eq!(counts().await, [2, 1]);
    // Whatever has become of the worker: they are what a deployment waits for.
    fence(&db.pool, &["charge"], None).await.expect("fenced");
    stop(&db.pool, one).await;
    assert_eq!(
        states(&db.pool).await,
        [("stopped".to_owned(), 2), ("draining".to_owned(), 1)]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn each_row_says_what_the_worker_serves_and_why_it_was_told() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "Orders", &[step("Charge")]).await;
    let worker = step_worker(&db.pool, "Orders", "Charge").await;
    fence(&db.pool, &["test-worker"], Some("deploy"))
        .await
        .expect("fenced");
    let rows: Vec<Value> = sqlx::query_scalar("select to_jsonb(s) from pgflow.worker_status s")
        .fetch_all(&db.pool)
        .await
        .expect("the view can be read");
    let stored: Value = sqlx::query_scalar("select to_jsonb(w) from pgflow.workers w")
        .fetch_one(&db.pool)
        .await
        .expect("one worker");
    assert_eq!(
        rows,
        [json!({
            "worker_id": worker, "function_name": "test-worker", "flow_slug": "Orders", "step_slug": "Charge",
            "queue_name": "orders__charge", "state": "draining", "started_tasks": 0, "deprecated_reason": "fenced: deploy", "build": null,
            "started_at": stored["started_at"], "last_heartbeat_at": stored["last_heartbeat_at"],
            "deprecated_at": stored["deprecated_at"], "stopped_at": null,
        })]
    );
    let live: Value = sqlx::query_scalar("select to_jsonb(l) from pgflow.live_workers l")
        .fetch_one(&db.pool)
        .await
        .expect("one worker");
    assert_eq!(
        live,
        json!({
            "worker_id": worker, "function_name": "test-worker", "flow_slug": "Orders", "step_slug": "Charge",
            "queue_name": "orders__charge", "deprecated_reason": "fenced: deploy",
            "started_at": stored["started_at"], "last_heartbeat_at": stored["last_heartbeat_at"],
            "deprecated_at": stored["deprecated_at"],
        })
    );
}
