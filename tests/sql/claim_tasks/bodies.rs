//! The body of a message is an envelope: the row decides which task it is, and a body that contradicts it is fatal.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::fatal::refused;
use crate::support::TestDb;
use crate::support::flows::{claim, define, start, step, worker};
use crate::support::invariants::assert_invariants;

async fn run_of_one_step(pool: &PgPool) -> Uuid {
    define(pool, "orders", &[step("a"), step("b").deps(&["a"])]).await;
    start(pool, "orders", json!({})).await
}

async fn set_body(pool: &PgPool, body: Option<Value>) {
    sqlx::query("update pgmq.q_orders set message = $1")
        .bind(body)
        .execute(pool)
        .await
        .expect("the body can be changed");
}

#[tokio::test]
async fn a_body_that_names_another_task_is_fatal() {
    let db = TestDb::new().await;
    let id = run_of_one_step(&db.pool).await;
    let worker = worker(&db.pool, "orders").await;
    let right = json!({"flow_slug": "orders", "run_id": id, "step_slug": "a", "task_index": 0});
    for (key, wrong) in [
        ("flow_slug", json!("Orders")),
        ("run_id", json!(Uuid::now_v7())),
        ("step_slug", json!("b")),
        ("task_index", json!(1)),
    ] {
        let mut body = right.clone();
        body[key] = wrong;
        set_body(&db.pool, Some(body)).await;
        let reason = "its body names another task than the one that it was sent for";
        assert_eq!(
            refused(&db.pool, worker).await,
            [(1, reason.to_owned())],
            "{key}"
        );
    }
    set_body(&db.pool, Some(right)).await;
    assert_eq!(claim(&db.pool, worker, 1).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_body_that_says_less_is_no_contradiction() {
    for body in [
        None,
        Some(json!({})),
        Some(json!([1])),
        Some(json!("a")),
        Some(json!({"step_slug": "a"})),
    ] {
        let db = TestDb::new().await;
        let id = run_of_one_step(&db.pool).await;
        set_body(&db.pool, body).await;
        let worker = worker(&db.pool, "orders").await;
        let claimed = claim(&db.pool, worker, 1).await;
        assert_eq!(claimed[0].run_id, id);
        assert_invariants(&db.pool).await;
    }
}
