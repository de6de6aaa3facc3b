//! The effect of `fail_task` on messages: that of the task, those of its siblings, and those of a
//! run with several queues.

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::flows::{claim, claim_one, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, tasks};
use crate::support::runs::{
    Failure, Item, claim_all, complete_batch, database_with, everything, fail_for_good,
    task_statuses, try_fail,
};

/// The ids of the messages of a step's tasks, by index.
async fn message_ids(pool: &PgPool, run_id: Uuid, step: &str) -> Vec<i64> {
    tasks(pool, run_id, step)
        .await
        .iter()
        .map(|task| task.message_id.expect("a message"))
        .collect()
}

/// Sends a task's message anew, to a queue of its own.
async fn move_to(pool: &PgPool, run_id: Uuid, step: &str, index: i32, queue: &'static str) {
    sqlx::query("select pgmq.create($1)")
        .bind(queue)
        .execute(pool)
        .await
        .expect("created");
    sqlx::query(
        "with old as (
             select t.message_id, t.queue_name from pgflow.step_tasks t where t.run_id = $1 and t.step_slug = $2 and t.task_index = $3
         ), removed as (
             select pgmq.delete(old.queue_name, old.message_id) from old
         ), sent as (
             select pgmq.send($4, '{}') as id from removed
         )
         update pgflow.step_tasks t set queue_name = $4, message_id = sent.id from sent
         where t.run_id = $1 and t.step_slug = $2 and t.task_index = $3",
    )
    .bind(run_id)
    .bind(step)
    .bind(index)
    .bind(queue)
    .execute(pool)
    .await
    .expect("moved");
}

/// Returns the numbers of live and of archived messages of each queue.
async fn live_and_archived(pool: &PgPool, queues: &[&str]) -> Vec<(usize, usize)> {
    let mut counts = Vec::new();
    for queue in queues {
        let live = messages(pool, queue).await.len();
        counts.push((live, archived(pool, queue).await.len()));
    }
    counts
}

#[tokio::test]
async fn all_messages_of_a_map_that_fails_its_run_are_archived() {
    let (db, worker) = database_with(&[step("m").map().max_attempts(1)]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3, 4, 5])).await;
    let all = message_ids(&db.pool, run_id, "m").await;
    let claimed = claim(&db.pool, worker, 2).await;
    fail(&db.pool, &claimed[1], "no").await;
    assert_eq!(archived(&db.pool, "f").await, all);
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "cancelled, failed, cancelled, cancelled, cancelled"
    );
    assert_invariants(&db.pool).await;
}

/// A worker that was given up reports late, and names no attempt: the message of the next attempt
/// must neither go nor be postponed.
#[tokio::test]
async fn a_failure_of_a_task_that_waits_changes_nothing() {
    let (db, worker) = database_with(&[step("m").map().base_delay(600).max_attempts(5)]).await;
    start(&db.pool, "f", json!([1, 2])).await;
    let first = claim_one(&db.pool, worker).await;
    fail(&db.pool, &first, "retried").await;
    let mut never_started = first.clone();
    never_started.task_index = 1;

    let before = everything(&db.pool, "f").await;
    for waiting in [&first, &never_started] {
        for (retry_delay, retryable) in [(None, true), (Some("9000"), true), (None, false)] {
            let failure = Failure {
                retry_delay,
                retryable,
                ..Failure::default()
            };
            let rows = try_fail(&db.pool, waiting, failure).await;
            assert_eq!(rows.expect("it is late"), ["queued"]);
        }
    }
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_messages_of_a_failed_run_are_archived_in_every_queue() {
    let (db, worker) = database_with(&[step("a"), step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3, 4])).await;
    let culprit = claim_one(&db.pool, worker).await;
    move_to(&db.pool, run_id, "m", 1, "second").await;
    move_to(&db.pool, run_id, "m", 2, "third").await;
    move_to(&db.pool, run_id, "m", 3, "third").await;
    fail_for_good(&db.pool, &culprit, "no").await;
    assert_eq!(
        live_and_archived(&db.pool, &["f", "second", "third"]).await,
        [(0, 2), (0, 1), (0, 2)]
    );
    assert_eq!(run(&db.pool, run_id).await.status, "failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_messages_of_a_skipped_step_are_archived_in_every_queue() {
    for mode in ["skip", "skip-cascade"] {
        let (db, worker) = database_with(&[
            step("m").map().when_exhausted(mode),
            step("other"),
            step("after").deps(&["m"]).start_delay(60),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!([1, 2, 3, 4])).await;
        let culprit = claim_one(&db.pool, worker).await;
        move_to(&db.pool, run_id, "m", 1, "second").await;
        move_to(&db.pool, run_id, "m", 2, "third").await;
        move_to(&db.pool, run_id, "other", 0, "third").await;
        fail_for_good(&db.pool, &culprit, "no").await;
        let after = usize::from(mode == "skip");
        assert_eq!(
            live_and_archived(&db.pool, &["f", "second", "third"]).await,
            [(after, 2), (0, 1), (1, 1)],
            "{mode}"
        );
        assert_eq!(
            task_statuses(&db.pool, run_id, "m").await,
            "failed, skipped, skipped, skipped"
        );
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn the_messages_of_a_completed_batch_are_archived_in_every_queue() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    let claimed = claim_all(&db.pool, worker).await;
    move_to(&db.pool, run_id, "m", 1, "second").await;
    move_to(&db.pool, run_id, "m", 2, "third").await;
    let batch: Vec<Item> = claimed
        .iter()
        .map(|task| Item::of(task, json!(0)))
        .collect();
    complete_batch(&db.pool, &batch).await;
    assert_eq!(
        live_and_archived(&db.pool, &["f", "second", "third"]).await,
        [(0, 1), (0, 1), (0, 1)]
    );
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}
