//! `unsupported_messages`: the messages that no worker can take.

use serde_json::json;
use sqlx::postgres::PgPool;

use crate::support::TestDb;
use crate::support::flows::{define, start, step, worker};

/// Queue, message, whether a task has it, and the reason.
pub(super) type Shown = (String, i64, bool, String);

pub(super) async fn shown(pool: &PgPool, queue: Option<&str>) -> Vec<Shown> {
    sqlx::query_as(
        "select queue_name, message_id, has_task, reason from pgflow.unsupported_messages(in_queue => $1)",
    )
    .bind(queue)
    .fetch_all(pool)
    .await
    .expect("messages can be listed")
}

pub(super) async fn send(pool: &PgPool, queue: &str, body: serde_json::Value) -> i64 {
    sqlx::query_scalar("select pgmq.send($1, $2)")
        .bind(queue)
        .bind(body)
        .fetch_one(pool)
        .await
        .expect("a message can be sent")
}

pub(super) async fn two_flows() -> TestDb {
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
    let listed: Vec<i64> = shown(&db.pool, None)
        .await
        .iter()
        .map(|row| row.1)
        .collect();
    assert_eq!((listed, claimed.len()), (claimed.clone(), 3));
}
