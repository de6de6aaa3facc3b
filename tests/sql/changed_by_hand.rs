//! Queues that somebody dropped, and messages that lie in the queue and in its archive at once: no
//! run hangs for it, and no other run does.

use serde_json::json;
use sqlx::PgPool;

use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, define, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, task};
use crate::support::runs::{age, claim_all, database_with, fail_for_good, outline, requeue};

async fn execute(pool: &PgPool, sql: &'static str) {
    sqlx::raw_sql(sql)
        .execute(pool)
        .await
        .expect("it can be done by hand");
}

/// As somebody does who archived the messages of queue `f` by mistake, and wants them back.
async fn archive_and_copy_back(pool: &PgPool) {
    execute(
        pool,
        "select pgmq.archive('f', array(select msg_id from pgmq.q_f));
         insert into pgmq.q_f (msg_id, read_ct, enqueued_at, message, vt) overriding system value
         select msg_id, read_ct, enqueued_at, message, vt from pgmq.a_f",
    )
    .await;
}

#[tokio::test]
async fn recovery_ends_the_tasks_of_a_queue_that_was_dropped_and_recovers_the_others() {
    let (db, first) = database_with(&[step("a"), step("b").when_exhausted("skip")]).await;
    define(&db.pool, "other", &[step("a")]).await;
    let second = worker(&db.pool, "other").await;
    let lost = start(&db.pool, "f", json!({})).await;
    let whole = start(&db.pool, "other", json!({})).await;
    claim_all(&db.pool, first).await;
    claim_all(&db.pool, second).await;
    for (run, step) in [(lost, "a"), (lost, "b"), (whole, "a")] {
        age(&db.pool, run, step, 3600).await;
    }
    execute(&db.pool, "select pgmq.drop_queue('f')").await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(task(&db.pool, whole, "a").await.status, "queued");
    assert_eq!(
        task(&db.pool, lost, "a").await.error_message.as_deref(),
        Some("stalled, and its message is gone from queue \"f\"")
    );
    assert_eq!(
        outline(&db.pool, lost).await,
        "run failed, a failed, b started"
    );
}

#[tokio::test]
async fn reports_on_tasks_of_a_queue_that_was_dropped_are_taken() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a"), step("b")]).await;
    let worker = worker(&db.pool, "f").await;
    let (completed, failed) = (
        start(&db.pool, "f", json!({})).await,
        start(&db.pool, "f", json!({})).await,
    );
    let claimed = claim_all(&db.pool, worker).await;
    execute(&db.pool, "select pgmq.drop_queue('f')").await;
    for task in &claimed {
        if task.run_id == completed {
            assert_eq!(complete(&db.pool, task, json!(1)).await, "completed");
        } else if task.step_slug == "a" {
            assert_eq!(fail(&db.pool, task, "no").await, "failed");
        }
    }
    assert_eq!(
        outline(&db.pool, completed).await,
        "run completed, a completed, b completed"
    );
    assert_eq!(
        outline(&db.pool, failed).await,
        "run failed, a failed, b started"
    );
    assert_eq!(
        task(&db.pool, failed, "a").await.error_message.as_deref(),
        Some("no (not retried: its message is gone from queue \"f\")")
    );
}

#[tokio::test]
async fn a_task_whose_message_was_copied_back_out_of_the_archive_completes() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run = start(&db.pool, "f", json!({})).await;
    archive_and_copy_back(&db.pool).await;
    let task = claim_one(&db.pool, worker).await;
    assert_eq!(complete(&db.pool, &task, json!(1)).await, "completed");
    assert_eq!(outline(&db.pool, run).await, "run completed, a completed");
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(archived(&db.pool, "f").await, [task.message_id]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_whose_messages_were_copied_back_out_of_the_archive_fails() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    let run = start(&db.pool, "f", json!({})).await;
    archive_and_copy_back(&db.pool).await;
    let task = claim_one(&db.pool, worker).await;
    assert_eq!(fail_for_good(&db.pool, &task, "no").await, "failed");
    assert_eq!(
        outline(&db.pool, run).await,
        "run failed, a failed, b started"
    );
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(archived(&db.pool, "f").await.len(), 2);
    // A late report finds them copied back once more.
    execute(
        &db.pool,
        "insert into pgmq.q_f (msg_id, enqueued_at, message, vt) overriding system value
         select msg_id, enqueued_at, message, vt from pgmq.a_f",
    )
    .await;
    assert_eq!(fail(&db.pool, &task, "late").await, "failed");
    assert_eq!(messages(&db.pool, "f").await.len(), 1);
}
