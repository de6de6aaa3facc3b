//! Messages that a claim reads and does not hand out: of tasks that are started, ended, or locked.

use serde_json::json;
use sqlx::PgTransaction;
use sqlx::postgres::PgPool;
use sqlx::types::chrono::{DateTime, Utc};

use super::restore_archived;
use crate::support::TestDb;
use crate::support::flows::{claim, claim_one, complete, define, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{Message, archived, messages, show_all, task, tasks};
use crate::support::sessions::{holding, without_waiting};

/// Lets the one started task look as if it had been started so many seconds ago; returns that
/// moment.
async fn started_ago(pool: &PgPool, seconds: i32) -> DateTime<Utc> {
    sqlx::query_scalar(
        "update pgflow.step_tasks
         set queued_at = clock_timestamp() - make_interval(secs => $1 + 1),
             started_at = clock_timestamp() - make_interval(secs => $1)
         where status = 'started'
         returning started_at",
    )
    .bind(seconds)
    .fetch_one(pool)
    .await
    .expect("time can be set back")
}

async fn only_message(pool: &PgPool) -> Message {
    let mut messages = messages(pool, "orders").await;
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

#[tokio::test]
async fn a_started_message_that_is_read_again_costs_no_attempt() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let (first, second) = (
        worker(&db.pool, "orders").await,
        worker(&db.pool, "orders").await,
    );
    let claimed = claim_one(&db.pool, first).await;
    let before = task(&db.pool, id, "a").await;
    show_all(&db.pool, "orders").await;
    assert!(claim(&db.pool, second, 1).await.is_empty());
    assert_eq!(task(&db.pool, id, "a").await, before);
    let message = only_message(&db.pool).await;
    // Until it can be recovered: 60 s of timeout, and 30 more.
    assert_eq!(message.read_count, 2);
    assert_eq!(message.visible_after(claimed.started_at), 90);
    assert_eq!(complete(&db.pool, &claimed, json!(1)).await, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn repeated_reads_of_a_started_message_never_push_its_recovery_out() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").timeout(10)]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    claim_one(&db.pool, worker).await;
    for ago in [11, 20, 30] {
        let started_at = started_ago(&db.pool, ago).await;
        show_all(&db.pool, "orders").await;
        assert!(claim(&db.pool, worker, 1).await.is_empty());
        let message = only_message(&db.pool).await;
        assert_eq!(message.visible_after(started_at), 40, "after {ago} s");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_started_message_past_its_recovery_is_hidden_for_a_second() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").timeout(10)]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    claim_one(&db.pool, worker).await;
    started_ago(&db.pool, 4000).await;
    show_all(&db.pool, "orders").await;
    let shown_at = only_message(&db.pool).await.visible_at;
    assert!(claim(&db.pool, worker, 1).await.is_empty());
    let message = only_message(&db.pool).await;
    assert!(message.visible_after(shown_at) >= 1 && message.hidden_for <= 1);
    assert_invariants(&db.pool).await;
}

/// A run that failed after all that can happen to a task had happened.
async fn run_with_every_ending(pool: &PgPool) -> Vec<String> {
    let steps = [
        step("done"),
        step("list"),
        step("soft")
            .deps(&["list"])
            .map()
            .max_attempts(1)
            .when_exhausted("skip"),
        step("hard").deps(&["soft"]).max_attempts(1),
        step("late").deps(&["list"]),
    ];
    define(pool, "orders", &steps).await;
    start(pool, "orders", json!({})).await;
    let worker = worker(pool, "orders").await;
    for task in claim(pool, worker, 2).await {
        complete(pool, &task, json!([1, 2])).await;
    }
    for wanted in ["soft", "hard"] {
        let claimed = claim(pool, worker, 10).await;
        let task = claimed.iter().find(|task| task.step_slug == wanted);
        assert_eq!(fail(pool, task.expect("claimed"), "no").await, "failed");
    }
    sqlx::query_scalar("select distinct status from pgflow.step_tasks order by 1")
        .fetch_all(pool)
        .await
        .expect("tasks can be read")
}

#[tokio::test]
async fn a_message_of_an_ended_task_is_archived() {
    let db = TestDb::new().await;
    let statuses = run_with_every_ending(&db.pool).await;
    assert_eq!(statuses, ["cancelled", "completed", "failed", "skipped"]);
    let all = archived(&db.pool, "orders").await;
    assert_eq!(all.len(), 6);
    restore_archived(&db.pool).await;
    let worker = worker(&db.pool, "orders").await;
    assert!(claim(&db.pool, worker, 10).await.is_empty());
    assert!(messages(&db.pool, "orders").await.is_empty());
    assert_eq!(archived(&db.pool, "orders").await, all);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_message_whose_step_or_run_was_ended_by_hand_is_archived() {
    for ended in [
        "update pgflow.runs set status = 'failed', failed_at = now()",
        "update pgflow.step_states set status = 'failed', failed_at = clock_timestamp()",
    ] {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a")]).await;
        let id = start(&db.pool, "orders", json!({})).await;
        let worker = worker(&db.pool, "orders").await;
        sqlx::query(ended).execute(&db.pool).await.expect("ended");
        assert!(claim(&db.pool, worker, 1).await.is_empty());
        assert_eq!(archived(&db.pool, "orders").await, [1]);
        assert_eq!(task(&db.pool, id, "a").await.attempts_count, 0);
    }
}

#[tokio::test]
async fn a_message_that_is_in_the_archive_already_leaves_the_queue_all_the_same() {
    let db = TestDb::new().await;
    run_with_every_ending(&db.pool).await;
    let all = archived(&db.pool, "orders").await;
    sqlx::query(
        "insert into pgmq.q_orders (msg_id, enqueued_at, message, vt) overriding system value
         select msg_id, enqueued_at, message, now() from pgmq.a_orders",
    )
    .execute(&db.pool)
    .await
    .expect("messages can be copied back");
    let worker = worker(&db.pool, "orders").await;
    assert!(claim(&db.pool, worker, 10).await.is_empty());
    assert!(messages(&db.pool, "orders").await.is_empty());
    assert_eq!(archived(&db.pool, "orders").await, all);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_batch_may_hold_messages_of_every_class() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let id = start(&db.pool, "orders", json!([0, 1, 2])).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    complete(&db.pool, &claimed[0], json!(0)).await;
    restore_archived(&db.pool).await;
    show_all(&db.pool, "orders").await;

    let second = claim(&db.pool, worker, 10).await;
    assert_eq!(second.iter().map(|t| t.task_index).collect::<Vec<_>>(), [2]);
    let statuses: Vec<(String, i32)> = tasks(&db.pool, id, "each")
        .await
        .into_iter()
        .map(|task| (task.status, task.attempts_count))
        .collect();
    let expected = [("completed", 1), ("started", 1), ("started", 1)];
    assert_eq!(statuses, expected.map(|(status, n)| (status.to_owned(), n)));
    let live: Vec<(i32, i64)> = messages(&db.pool, "orders")
        .await
        .iter()
        .zip([claimed[1].started_at, second[0].started_at])
        .map(|(message, started_at)| (message.read_count, message.visible_after(started_at)))
        .collect();
    assert_eq!(live, [(2, 90), (1, 62)]);
    assert_eq!(archived(&db.pool, "orders").await, [claimed[0].message_id]);
    assert_invariants(&db.pool).await;
}

async fn lock_first_task(pool: &PgPool) -> PgTransaction<'static> {
    holding(
        pool,
        "select from pgflow.step_tasks where task_index = 0 for no key update",
    )
    .await
}

#[tokio::test]
async fn a_message_whose_task_is_locked_is_left_for_the_next_claim() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let holder = lock_first_task(&db.pool).await;
    let claimed = without_waiting(claim(&db.pool, worker, 2)).await;
    assert_eq!(
        claimed.iter().map(|t| t.task_index).collect::<Vec<_>>(),
        [1]
    );
    let first = &messages(&db.pool, "orders").await[0];
    assert_eq!((first.read_count, first.hidden_for), (0, 0));
    holder.commit().await.expect("released");
    assert_eq!(claim_one(&db.pool, worker).await.task_index, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_batch_of_nothing_but_locked_tasks_is_left_as_it_is() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    claim_one(&db.pool, worker).await;
    show_all(&db.pool, "orders").await;
    let before = only_message(&db.pool).await;
    let holder = lock_first_task(&db.pool).await;
    let claimed = without_waiting(claim(&db.pool, worker, 1)).await;
    assert!(claimed.is_empty());
    holder.commit().await.expect("released");
    assert_eq!(only_message(&db.pool).await, before);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_reads_past_tasks_that_are_locked() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!(vec![1; 60])).await;
    let worker = worker(&db.pool, "orders").await;
    let lock = "select from pgflow.step_tasks where task_index < 25 for no key update";
    let holder = holding(&db.pool, lock).await;
    let claimed = without_waiting(claim(&db.pool, worker, 10)).await;
    let indexes: Vec<i32> = claimed.iter().map(|task| task.task_index).collect();
    assert_eq!(indexes, (25..35).collect::<Vec<_>>());
    // Some of what it reads first is free.
    let lock = "select from pgflow.step_tasks where task_index between 38 and 44 for no key update";
    let other = holding(&db.pool, lock).await;
    holder.commit().await.expect("released");
    let claimed = without_waiting(claim(&db.pool, worker, 33)).await;
    let indexes: Vec<i32> = claimed.iter().map(|task| task.task_index).collect();
    assert_eq!(
        indexes,
        (0..25).chain(35..38).chain(45..50).collect::<Vec<_>>()
    );
    other.commit().await.expect("released");
    assert_invariants(&db.pool).await;
}

/// As one that ends a large run does.
#[tokio::test]
async fn a_claim_reads_past_a_run_whose_tasks_are_all_locked() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let large = start(&db.pool, "orders", json!(vec![1; 1500])).await;
    let small = start(&db.pool, "orders", json!([1, 2])).await;
    let worker = worker(&db.pool, "orders").await;
    let lock = "select from pgflow.step_tasks \
        where run_id = (select r.run_id from pgflow.runs r order by r.run_id limit 1) for no key update";
    let holder = holding(&db.pool, lock).await;
    let claimed = without_waiting(claim(&db.pool, worker, 10)).await;
    let found: Vec<_> = claimed.iter().map(|t| (t.run_id, t.task_index)).collect();
    assert_eq!(found, [(small, 0), (small, 1)]);
    let nothing = without_waiting(claim(&db.pool, worker, 10)).await;
    assert_eq!(nothing, []);
    holder.commit().await.expect("released");
    assert_eq!(claim_one(&db.pool, worker).await.run_id, large);
    assert_invariants(&db.pool).await;
}
