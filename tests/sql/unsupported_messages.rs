//! Messages that no worker can take: how they are shown, and how those that no task has are archived.

use serde_json::json;
use sqlx::postgres::PgPool;

use crate::support::TestDb;
use crate::support::flows::{claim_one, define, start, step, worker};
use crate::support::operations::{standing, track};

type Shown = (String, i64, bool, String);

async fn shown(pool: &PgPool, queue: Option<&str>) -> Vec<Shown> {
    sqlx::query_as(
        "select queue_name, message_id, has_task, reason from pgflow.unsupported_messages(queue_name => $1)",
    )
    .bind(queue)
    .fetch_all(pool)
    .await
    .expect("messages can be listed")
}

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
    sqlx::query_scalar(query).fetch_one(pool).await.expect(query)
}

async fn send(pool: &PgPool, queue: &str, body: serde_json::Value) -> i64 {
    sqlx::query_scalar("select pgmq.send($1, $2)")
        .bind(queue)
        .bind(body)
        .fetch_one(pool)
        .await
        .expect("a message can be sent")
}

async fn two_flows() -> TestDb {
    let db = TestDb::new().await;
    for flow in ["orders", "audit"] {
        define(&db.pool, flow, &[step("one")]).await;
    }
    db
}

#[tokio::test]
async fn only_what_no_worker_can_take_is_shown_with_its_reason() {
    let db = two_flows().await;
    start(&db.pool, "orders", json!({})).await;
    let alien = send(&db.pool, "orders", json!({"hello": 1})).await;
    let scalar = send(&db.pool, "audit", json!("text")).await;
    let none = "no task has this message".to_owned();
    let expected = [
        ("audit".to_owned(), scalar, false, none.clone()),
        ("orders".to_owned(), alien, false, none),
    ];
    assert_eq!(shown(&db.pool, None).await, expected);
    assert_eq!(shown(&db.pool, Some("Orders")).await, expected[1..]);
    assert_eq!(shown(&db.pool, Some("unknown")).await, []);
}

#[tokio::test]
async fn what_no_task_has_is_archived_and_work_goes_on() {
    let db = two_flows().await;
    let orders = worker(&db.pool, "orders").await;
    start(&db.pool, "orders", json!({})).await;
    let first = send(&db.pool, "orders", json!({"hello": 1})).await;
    let second = send(&db.pool, "orders", json!(null)).await;
    let other = send(&db.pool, "audit", json!({})).await;
    assert_eq!(archive(&db.pool, "orders").await, [(first, true), (second, true)]);
    assert_eq!(number(&db.pool, "select count(*) from pgmq.a_orders").await, 2);
    claim_one(&db.pool, orders).await;
    // Of its own queues only, and once.
    assert_eq!(archive(&db.pool, "orders").await, []);
    assert_eq!(shown(&db.pool, None).await[0].1, other);
}

#[tokio::test]
async fn a_message_of_a_task_stays_as_the_task_would_never_run() {
    let db = two_flows().await;
    worker(&db.pool, "orders").await;
    start(&db.pool, "orders", json!({})).await;
    sqlx::query("update pgmq.q_orders set message = message || '{\"step_slug\": \"other\"}'")
        .execute(&db.pool)
        .await
        .unwrap();
    let message = number(&db.pool, "select msg_id from pgmq.q_orders").await;
    assert_eq!(archive(&db.pool, "orders").await, [(message, false)]);
    assert_eq!(number(&db.pool, "select count(*) from pgmq.q_orders").await, 1);
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

#[tokio::test]
async fn what_the_list_calls_unsupported_is_what_a_claim_calls_so() {
    let db = two_flows().await;
    let orders = worker(&db.pool, "orders").await;
    start(&db.pool, "orders", json!({})).await;
    for body in [json!({}), json!([1]), json!({"flow_slug": "orders"})] {
        send(&db.pool, "orders", body).await;
    }
    let claimed: Vec<i64> = sqlx::query_scalar(
        "select message_id from pgflow.claim_tasks(worker_id => $1, max_tasks => 10) where outcome = 'unsupported'",
    )
    .bind(orders)
    .fetch_all(&db.pool)
    .await
    .unwrap();
    let listed: Vec<i64> = shown(&db.pool, None).await.iter().map(|row| row.1).collect();
    assert_eq!((listed, claimed.len()), (claimed.clone(), 3));
}
