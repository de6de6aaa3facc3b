//! The body of a message is an envelope: the row decides which task it is, and a body that
//! contradicts it is fatal.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::{fatal::refused, restore_archived};
use crate::support::TestDb;
use crate::support::flows::{claim, complete, define, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, show_all};

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
        Some(json!(0)),
        Some(json!(null)),
        Some(json!({"flow_slug": null, "run_id": null, "step_slug": null, "task_index": null})),
        // As other writers may have it.
        Some(json!({"task_index": "0", "more": {"flow_slug": "other"}})),
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

#[tokio::test]
async fn what_stands_in_a_key_and_names_nothing_is_fatal() {
    let db = TestDb::new().await;
    run_of_one_step(&db.pool).await;
    let worker = worker(&db.pool, "orders").await;
    for wrong in [json!(""), json!(true), json!({}), json!([]), json!(-1)] {
        for key in ["flow_slug", "run_id", "step_slug", "task_index"] {
            let body = json!({key: wrong});
            set_body(&db.pool, Some(body.clone())).await;
            assert_eq!(refused(&db.pool, worker).await.len(), 1, "{body}");
        }
    }
    set_body(&db.pool, None).await;
    assert_invariants(&db.pool).await;
}

/// A task that has ended, or is being run, is no excuse: whoever wrote the body meant something
/// else.
#[tokio::test]
async fn a_wrong_body_is_fatal_whatever_has_become_of_its_task() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let task = claim(&db.pool, worker, 1).await.remove(0);
    let body = Some(json!({"run_id": Uuid::now_v7()}));

    set_body(&db.pool, body.clone()).await;
    show_all(&db.pool, "orders").await;
    assert_eq!(refused(&db.pool, worker).await.len(), 1);
    assert_eq!(complete(&db.pool, &task, json!(1)).await, "completed");
    restore_archived(&db.pool).await;
    assert_eq!(refused(&db.pool, worker).await.len(), 1);
    assert!(archived(&db.pool, "orders").await.is_empty());

    set_body(&db.pool, None).await;
    assert!(claim(&db.pool, worker, 1).await.is_empty());
    assert_eq!(archived(&db.pool, "orders").await, [task.message_id]);
    assert_invariants(&db.pool).await;
}
