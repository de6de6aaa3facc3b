//! Faults that must not stop `requeue_stalled_tasks`: one broken task, or a concurrent session,
//! must not keep the others from being recovered.

use serde_json::json;

use crate::support::flows::{start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::task;
use crate::support::runs::{
    age, claim_all, database_with, outline, requeue, task_statuses, until_recovery_looks,
};
use crate::support::sessions::holding;

#[tokio::test]
async fn a_task_whose_message_is_gone_is_exhausted_and_the_others_are_requeued() {
    let (db, worker) = database_with(&[step("a").when_exhausted("skip"), step("b")]).await;
    let broken = start(&db.pool, "f", json!({})).await;
    let whole = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    let lost = claimed
        .iter()
        .find(|t| t.run_id == broken && t.step_slug == "a")
        .expect("it was claimed");
    sqlx::query("select pgmq.delete('f', $1)")
        .bind(lost.message_id)
        .execute(&db.pool)
        .await
        .expect("the message can be deleted");
    for run_id in [broken, whole] {
        age(&db.pool, run_id, "a", 3600).await;
        age(&db.pool, run_id, "b", 3600).await;
    }
    assert_eq!(requeue(&db.pool).await, 3);
    assert_eq!(
        outline(&db.pool, broken).await,
        "run started, a skipped: handler_failed, b started"
    );
    assert_eq!(
        task(&db.pool, broken, "a").await.error_message.as_deref(),
        Some("stalled, and its message is gone from queue \"f\"")
    );
    assert_eq!(task_statuses(&db.pool, broken, "b").await, "queued");
    assert_eq!(task_statuses(&db.pool, whole, "a").await, "queued");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_longest_timeout_there_can_be_is_no_obstacle() {
    let (db, worker) = database_with(&[step("a").timeout(i32::MAX), step("b")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(claim_all(&db.pool, worker).await.len(), 2);
    for step in ["a", "b"] {
        age(&db.pool, run_id, step, 3600).await;
    }
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(task_statuses(&db.pool, run_id, "a").await, "started");
    assert_eq!(task_statuses(&db.pool, run_id, "b").await, "queued");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_somebody_else_holds_is_left_for_the_next_call() {
    let (db, worker) = database_with(&[step("a")]).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(start(&db.pool, "f", json!({})).await);
    }
    claim_all(&db.pool, worker).await;
    for &run_id in &runs {
        age(&db.pool, run_id, "a", 3600).await;
    }
    for query in [
        "select from pgflow.runs order by run_id limit 1 for no key update",
        "select from pgflow.step_states order by run_id limit 1 for no key update",
        "select from pgflow.step_tasks order by run_id limit 1 for no key update",
    ] {
        let held = holding(&db.pool, query).await;
        requeue(&db.pool).await;
        let left: i64 =
            sqlx::query_scalar("select count(*) from pgflow.step_tasks where status = 'started'")
                .fetch_one(&db.pool)
                .await
                .expect("tasks can be counted");
        assert_eq!(left, 1, "{query}");
        held.rollback().await.expect("the rows are let go");
        until_recovery_looks(&db.pool).await;
    }
    assert_eq!(requeue(&db.pool).await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_second_call_at_the_same_time_leaves_the_work_to_the_first() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_all(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(requeue(&mut *first).await, 1);
    assert_eq!(requeue(&db.pool).await, 0);
    first.commit().await.expect("the first call ends");
    assert_eq!(task_statuses(&db.pool, run_id, "a").await, "queued");
    assert_invariants(&db.pool).await;
}
