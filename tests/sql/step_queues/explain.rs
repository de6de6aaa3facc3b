//! `explain_step` where each step has a queue: what it says rests on the step's own queue and
//! workers.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    claim_one, complete, define_with_step_queues, raw_claim, start, step, step_worker,
};
use crate::support::invariants::assert_invariants;

/// The reason, the queue, its live workers, and why their function is disabled.
async fn explained(pool: &PgPool, run: Uuid, step: &str) -> (String, String, i64, Option<String>) {
    let answer: Value = sqlx::query_scalar("select pgflow.explain_step($1, $2)")
        .bind(run)
        .bind(step)
        .fetch_one(pool)
        .await
        .expect("the step can be explained");
    let text = |key: &str| answer[key].as_str().map(str::to_owned);
    (
        text("reason").expect("a reason"),
        text("queue_name").expect("a queue"),
        answer["live_workers"].as_i64().expect("a number"),
        text("disabled_reason"),
    )
}

fn says(reason: &str, queue: &str, live: i64) -> (String, String, i64, Option<String>) {
    (reason.to_owned(), queue.to_owned(), live, None)
}

#[tokio::test]
async fn a_worker_of_another_step_is_no_worker_of_this_one() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "Orders", &[step("a"), step("b")]).await;
    let id = start(&db.pool, "Orders", json!({})).await;
    for _ in 0..2 {
        step_worker(&db.pool, "Orders", "b").await;
    }
    assert_eq!(
        explained(&db.pool, id, "a").await,
        says("no_worker", "orders__a", 0)
    );
    assert_eq!(
        explained(&db.pool, id, "b").await,
        says("waiting_for_worker", "orders__b", 2)
    );
    sqlx::query("update pgflow.workers set deprecated_at = now()")
        .execute(&db.pool)
        .await
        .expect("deprecated");
    assert_eq!(
        explained(&db.pool, id, "b").await,
        says("no_worker", "orders__b", 0)
    );
    step_worker(&db.pool, "Orders", "a").await;
    assert_eq!(
        explained(&db.pool, id, "a").await,
        says("waiting_for_worker", "orders__a", 1)
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn each_step_is_told_by_its_own_tasks_and_queue() {
    let db = TestDb::new().await;
    let steps = [
        step("a"),
        step("b"),
        step("late").start_delay(60),
        step("after").deps(&["a"]),
    ];
    define_with_step_queues(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = step_worker(&db.pool, "orders", "a").await;
    let task = claim_one(&db.pool, worker).await;
    assert_eq!(
        explained(&db.pool, id, "a").await,
        says("running", "orders__a", 1)
    );
    assert_eq!(
        explained(&db.pool, id, "late").await,
        says("start_delay", "orders__late", 0)
    );
    assert_eq!(
        explained(&db.pool, id, "after").await,
        says("waiting_for_dependencies", "orders__after", 0)
    );
    complete(&db.pool, &task, json!(1)).await;
    assert_eq!(
        explained(&db.pool, id, "a").await,
        says("completed", "orders__a", 1)
    );
    assert_eq!(
        explained(&db.pool, id, "after").await,
        says("no_worker", "orders__after", 0)
    );
    assert_invariants(&db.pool).await;
    sqlx::query("select pgmq.drop_queue('orders__b')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    assert_eq!(
        explained(&db.pool, id, "b").await,
        says("message_missing", "orders__b", 0)
    );
    assert_eq!(
        explained(&db.pool, id, "after").await,
        says("no_worker", "orders__after", 0)
    );
}

#[tokio::test]
async fn a_function_that_was_disabled_over_another_queue_is_no_reason_here() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let b = step_worker(&db.pool, "orders", "b").await;
    sqlx::query("select pgmq.send('orders__b', '{}')")
        .execute(&db.pool)
        .await
        .expect("sent");
    assert_eq!(raw_claim(&db.pool, b, 10).await.len(), 1, "a fatal answer");
    assert_eq!(
        explained(&db.pool, id, "a").await,
        says("no_worker", "orders__a", 0)
    );
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(b)
        .execute(&db.pool)
        .await
        .expect("stopped");
    let (reason, queue, live, disabled) = explained(&db.pool, id, "b").await;
    assert_eq!(
        (reason.as_str(), queue.as_str(), live),
        ("no_worker", "orders__b", 0)
    );
    let disabled = disabled.expect("a reason");
    assert!(
        disabled.starts_with("unsupported work in queue \"orders__b\""),
        "{disabled}"
    );
}
