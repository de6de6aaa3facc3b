//! Messages that are not this worker's to run: the whole claim is refused, and the worker's
//! function is disabled.

use serde_json::{Value, json};
use sqlx::Row;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::restore_archived;
use crate::support::TestDb;
use crate::support::flows::{
    FUNCTION, claim, claim_one, complete, define, raw_claim, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::show_all;

/// The message ids and reasons of a fatal answer.
pub(super) async fn refused(pool: &PgPool, worker: Uuid) -> Vec<(i64, String)> {
    raw_claim(pool, worker, 10)
        .await
        .iter()
        .map(|row| {
            assert_eq!(row.get::<String, _>("outcome"), "unsupported");
            (row.get("message_id"), row.get("reason"))
        })
        .collect()
}

/// Sends a message that no task was made for.
async fn send(pool: &PgPool, queue: &str, body: Value) -> i64 {
    sqlx::query_scalar("select pgmq.send($1, $2)")
        .bind(queue)
        .bind(body)
        .fetch_one(pool)
        .await
        .expect("sent")
}

/// Everything that a claim may change, except the worker functions.
async fn everything(pool: &PgPool) -> Value {
    sqlx::query_scalar(
        "select jsonb_build_object(
            'runs', (select jsonb_agg(r order by r.run_id) from pgflow.runs r),
            'states', (select jsonb_agg(s order by s.run_id, s.step_slug) from pgflow.step_states s),
            'tasks', (select jsonb_agg(t order by t.run_id, t.step_slug, t.task_index) from pgflow.step_tasks t),
            'workers', (select jsonb_agg(w order by w.worker_id) from pgflow.workers w),
            'live', (select jsonb_agg(q order by q.msg_id) from pgmq.q_orders q),
            'archived', (select jsonb_agg(a order by a.msg_id) from pgmq.a_orders a))",
    )
    .fetch_one(pool)
    .await
    .expect("rows can be read")
}

async fn function(pool: &PgPool, name: &str) -> (bool, bool, Option<String>) {
    sqlx::query_as(
        "select enabled, disabled_at is not null, disabled_reason from pgflow.worker_functions where function_name = $1",
    )
    .bind(name)
    .fetch_one(pool)
    .await
    .expect("the function is tracked")
}

#[tokio::test]
async fn a_message_without_a_task_is_fatal() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    let id = send(&db.pool, "orders", json!({"hello": "secret"})).await;
    let rows = raw_claim(&db.pool, worker, 10).await;
    assert_eq!(rows.len(), 1);
    let row: Value =
        sqlx::query_scalar("select to_jsonb(c) - 'enqueued_at' from pgflow.claim_tasks($1, 10) c")
            .bind(worker)
            .fetch_one(&db.pool)
            .await
            .expect("an answer");
    assert_eq!(
        row,
        json!({
            "outcome": "unsupported", "queue_name": "orders", "message_id": id, "reason": "no task has this message", "read_count": 0,
            "run_id": null, "step_slug": null, "task_index": null, "attempt": null, "max_attempts": null, "timeout": null,
            "started_at": null, "input": null, "flow_input": null,
        })
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_first_reason_for_disabling_a_function_is_kept() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    let first = send(&db.pool, "orders", json!({})).await;
    refused(&db.pool, worker).await;
    let disabled = function(&db.pool, FUNCTION).await;
    assert!(
        disabled
            .2
            .as_ref()
            .is_some_and(|r| r.contains(&format!("message {first}:")))
    );

    sqlx::query("select pgmq.delete('orders', $1::bigint)")
        .bind(first)
        .execute(&db.pool)
        .await
        .expect("deleted");
    send(&db.pool, "orders", json!({})).await;
    refused(&db.pool, worker).await;
    assert_eq!(function(&db.pool, FUNCTION).await, disabled);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_fatal_claim_changes_nothing_but_that_its_function_is_disabled() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!([0, 1, 2, 3])).await;
    sqlx::query("select pgflow.track_worker_function('another')")
        .execute(&db.pool)
        .await
        .expect("tracked");
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    complete(&db.pool, &claimed[0], json!(0)).await;
    restore_archived(&db.pool).await;
    show_all(&db.pool, "orders").await;
    let stray = send(&db.pool, "orders", json!({})).await;

    let before = everything(&db.pool).await;
    for _ in 0..2 {
        let expected = (stray, "no task has this message".to_owned());
        assert_eq!(refused(&db.pool, worker).await, [expected]);
        assert_eq!(everything(&db.pool).await, before);
    }
    let reason =
        format!("unsupported work in queue \"orders\": message {stray}: no task has this message");
    assert_eq!(
        function(&db.pool, FUNCTION).await,
        (false, true, Some(reason))
    );
    assert_eq!(function(&db.pool, "another").await, (true, false, None));

    sqlx::query("select pgmq.delete('orders', $1::bigint)")
        .bind(stray)
        .execute(&db.pool)
        .await
        .expect("removed");
    assert_eq!(claim(&db.pool, worker, 10).await.len(), 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_offender_beyond_the_batch_is_not_seen() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let stray = send(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    claim_one(&db.pool, worker).await;
    assert!(function(&db.pool, FUNCTION).await.0);
    assert_eq!(refused(&db.pool, worker).await[0].0, stray);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn every_offender_has_a_row_and_the_first_one_is_the_reason() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    let first = send(&db.pool, "orders", json!({})).await;
    start(&db.pool, "orders", json!({})).await;
    let second = send(&db.pool, "orders", json!({})).await;
    let offenders: Vec<i64> = refused(&db.pool, worker)
        .await
        .iter()
        .map(|r| r.0)
        .collect();
    assert_eq!(offenders, [first, second]);
    let reason = function(&db.pool, FUNCTION).await.2.expect("a reason");
    assert!(reason.contains(&format!("message {first}:")), "{reason}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_of_another_flow_is_fatal() {
    let db = TestDb::new().await;
    for flow in ["orders", "other"] {
        define(&db.pool, flow, &[step("a")]).await;
    }
    start(&db.pool, "other", json!({})).await;
    let id = send(&db.pool, "orders", json!({})).await;
    sqlx::query("update pgflow.step_tasks set queue_name = 'orders', message_id = $1")
        .bind(id)
        .execute(&db.pool)
        .await
        .expect("moved");
    let worker = worker(&db.pool, "orders").await;
    let reason = "its task belongs to flow \"other\", this worker serves flow \"orders\"";
    assert_eq!(refused(&db.pool, worker).await, [(id, reason.to_owned())]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_of_another_step_is_fatal_to_a_worker_of_one_step() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    sqlx::query("update pgflow.workers set step_slug = 'b'")
        .execute(&db.pool)
        .await
        .expect("narrowed");
    let reason = "its task belongs to step \"a\", this worker serves step \"b\"";
    assert_eq!(refused(&db.pool, worker).await, [(1, reason.to_owned())]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_whose_step_is_routed_elsewhere_is_fatal() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    sqlx::query("update pgflow.steps set queue_name = 'orders__a'")
        .execute(&db.pool)
        .await
        .expect("routed");
    let worker = worker(&db.pool, "orders").await;
    let reason = "step \"a\" is routed to queue \"orders__a\"";
    assert_eq!(refused(&db.pool, worker).await, [(1, reason.to_owned())]);
    assert_invariants(&db.pool).await;
}
