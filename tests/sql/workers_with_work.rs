//! `workers_with_work`: which idle workers have something to claim.

use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    claim, define, define_with_step_queues, start, step, step_worker, worker,
};

async fn with_work(pool: &PgPool, workers: &[Uuid]) -> Vec<Uuid> {
    let mut found: Vec<Uuid> = sqlx::query_scalar("select pgflow.workers_with_work($1)")
        .bind(workers)
        .fetch_all(pool)
        .await
        .unwrap();
    found.sort_unstable();
    found
}

#[tokio::test]
async fn only_workers_of_queues_with_a_visible_message_have_work() {
    let db = TestDb::new().await;
    define_with_step_queues(
        &db.pool,
        "orders",
        &[
            step("now"),
            step("later").start_delay(60),
            step("last").deps(&["now"]),
        ],
    )
    .await;
    let now = step_worker(&db.pool, "orders", "now").await;
    let also_now = step_worker(&db.pool, "orders", "now").await;
    let later = step_worker(&db.pool, "orders", "later").await;
    let last = step_worker(&db.pool, "orders", "last").await;
    let all = [now, also_now, later, last];
    assert!(with_work(&db.pool, &all).await.is_empty());
    start(&db.pool, "orders", json!({})).await;
    assert_eq!(with_work(&db.pool, &all).await, [now, also_now]);
    assert_eq!(claim(&db.pool, now, 5).await.len(), 1);
    assert!(with_work(&db.pool, &all).await.is_empty());
    // Time passes.
    sqlx::query("update pgmq.q_orders__later set vt = clock_timestamp()")
        .execute(&db.pool)
        .await
        .unwrap();
    assert_eq!(with_work(&db.pool, &all).await, [later]);
    assert!(with_work(&db.pool, &[now, last]).await.is_empty());
}

#[tokio::test]
async fn workers_that_may_not_claim_have_no_work() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    define(&db.pool, "gone", &[step("a")]).await;
    for flow in ["orders", "gone"] {
        start(&db.pool, flow, json!({})).await;
    }
    let running = worker(&db.pool, "orders").await;
    let stopped = worker(&db.pool, "orders").await;
    let deprecated = worker(&db.pool, "orders").await;
    let of_dropped_queue = worker(&db.pool, "gone").await;
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(stopped)
        .execute(&db.pool)
        .await
        .unwrap();
    sqlx::query("update pgflow.workers set deprecated_at = now() where worker_id = $1")
        .bind(deprecated)
        .execute(&db.pool)
        .await
        .unwrap();
    sqlx::query("drop table pgmq.q_gone cascade")
        .execute(&db.pool)
        .await
        .unwrap();
    let all = [running, stopped, deprecated, of_dropped_queue, Uuid::nil()];
    assert_eq!(with_work(&db.pool, &all).await, [running]);
}
