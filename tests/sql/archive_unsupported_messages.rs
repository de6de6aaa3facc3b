//! `archive_unsupported_messages`: the way out for a worker function that a stray message has
//! disabled.

use serde_json::json;
use sqlx::postgres::PgPool;

use super::unsupported_messages::{send, shown, two_flows};
use crate::support::flows::{claim_one, start};
use crate::support::operations::{standing, track, worker_of};

async fn archive(pool: &PgPool, function: &str) -> Vec<(i64, bool)> {
    sqlx::query_as(
        "select message_id, archived from pgflow.archive_unsupported_messages(function_name => $1)",
    )
    .bind(function)
    .fetch_all(pool)
    .await
    .expect("messages can be archived")
}

async fn number(pool: &PgPool, query: &'static str) -> i64 {
    sqlx::query_scalar(query)
        .fetch_one(pool)
        .await
        .expect(query)
}

#[tokio::test]
async fn what_no_task_has_is_archived_and_work_goes_on() {
    let db = two_flows().await;
    let orders = worker_of(&db.pool, "orders", "orders").await;
    start(&db.pool, "orders", json!({})).await;
    let first = send(&db.pool, "orders", json!({"hello": 1})).await;
    let second = send(&db.pool, "orders", json!(null)).await;
    let other = send(&db.pool, "audit", json!({})).await;
    assert_eq!(
        archive(&db.pool, "orders").await,
        [(first, true), (second, true)]
    );
    assert_eq!(
        number(&db.pool, "select count(*) from pgmq.a_orders").await,
        2
    );
    claim_one(&db.pool, orders).await;
    // Of its own queues only, and once.
    assert_eq!(archive(&db.pool, "orders").await, []);
    assert_eq!(shown(&db.pool, None).await[0].1, other);
}

#[tokio::test]
async fn a_message_of_a_task_stays_as_the_task_would_never_run() {
    let db = two_flows().await;
    worker_of(&db.pool, "orders", "orders").await;
    start(&db.pool, "orders", json!({})).await;
    sqlx::query("update pgmq.q_orders set message = message || '{\"step_slug\": \"other\"}'")
        .execute(&db.pool)
        .await
        .unwrap();
    let message = number(&db.pool, "select msg_id from pgmq.q_orders").await;
    assert_eq!(archive(&db.pool, "orders").await, [(message, false)]);
    assert_eq!(
        number(&db.pool, "select count(*) from pgmq.q_orders").await,
        1
    );
    let reason = &shown(&db.pool, None).await[0].3;
    assert!(reason.contains("another task"), "{reason}");
}

#[tokio::test]
async fn a_function_without_workers_is_known_by_the_name_of_its_queue() {
    let db = two_flows().await;
    track(&db.pool, "audit").await;
    let alien = send(&db.pool, "audit", json!({})).await;
    assert_eq!(archive(&db.pool, "audit").await, [(alien, true)]);
    assert_eq!(standing(&db.pool, "audit").await, "enabled");
    let refused = sqlx::query("select pgflow.archive_unsupported_messages('nobody')")
        .execute(&db.pool)
        .await
        .unwrap_err();
    let error = refused.into_database_error().unwrap();
    assert_eq!(error.code().as_deref(), Some("PF001"));
}
