//! `claim_tasks`: what a worker gets, and what becomes of every other message that it reads.

mod bodies;
mod classes;
mod duplicates;
mod fatal;
mod inputs;
mod mixed;

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    claim, claim_one, complete, define, fail, start, step, try_claim, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, raised, show_all, task};

/// Puts every archived message of a queue back into it, to be read at once.
pub(super) async fn restore_archived(pool: &PgPool) {
    sqlx::query(
        "with archived as (delete from pgmq.a_orders returning msg_id, read_ct, enqueued_at, message)
         insert into pgmq.q_orders (msg_id, read_ct, enqueued_at, message, vt) overriding system value
         select *, now() from archived",
    )
    .execute(pool)
    .await
    .expect("messages can be put back");
}

#[tokio::test]
async fn a_claim_starts_a_task_and_says_all_about_it() {
    let db = TestDb::new().await;
    let steps = [step("a").max_attempts(7).timeout(9)];
    define(&db.pool, "Orders", &steps).await;
    let id = start(&db.pool, "Orders", json!({"id": 1})).await;
    let worker = worker(&db.pool, "Orders").await;
    let claimed = claim_one(&db.pool, worker).await;

    assert_eq!(claimed.run_id, id);
    assert_eq!((claimed.step_slug.as_str(), claimed.task_index), ("a", 0));
    assert_eq!(
        (claimed.attempt, claimed.max_attempts, claimed.timeout),
        (1, 7, 9)
    );
    assert_eq!(
        (claimed.queue_name.as_str(), claimed.read_count),
        ("orders", 1)
    );
    assert_eq!(claimed.input, json!({"id": 1}));

    let stored = task(&db.pool, id, "a").await;
    assert_eq!(
        (stored.status.as_str(), stored.attempts_count),
        ("started", 1)
    );
    assert_eq!(stored.last_worker_id, Some(worker));
    assert_eq!(stored.message_id, Some(claimed.message_id));
    let times: (DateTime<Utc>, DateTime<Utc>) = sqlx::query_as(
        "select t.started_at, q.enqueued_at from pgflow.step_tasks t join pgmq.q_orders q on q.msg_id = t.message_id",
    )
    .fetch_one(&db.pool)
    .await
    .expect("times can be read");
    assert_eq!(times, (claimed.started_at, claimed.enqueued_at));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_takes_the_oldest_messages_and_no_more_than_asked_for() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!([0, 1, 2, 3, 4])).await;
    let worker = worker(&db.pool, "orders").await;
    let mut indexes = Vec::new();
    for asked in [2, 1, 100] {
        let claimed = claim(&db.pool, worker, asked).await;
        indexes.push(claimed.iter().map(|t| t.task_index).collect::<Vec<_>>());
    }
    assert_eq!(indexes, [vec![0, 1], vec![2], vec![3, 4]]);
    assert!(claim(&db.pool, worker, 1).await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claimed_message_is_hidden_for_the_effective_timeout_and_2_s() {
    let db = TestDb::new().await;
    let steps = [
        step("own").timeout(10),
        step("inherited"),
        step("longest").timeout(i32::MAX),
    ];
    define(&db.pool, "orders", &steps).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 3).await;
    let messages = messages(&db.pool, "orders").await;
    let hidden: Vec<(&str, i32, i64)> = claimed
        .iter()
        .zip(&messages)
        .map(|(task, message)| {
            assert_eq!((message.id, message.read_count), (task.message_id, 1));
            let seconds = message.visible_after(task.started_at);
            (task.step_slug.as_str(), task.timeout, seconds)
        })
        .collect();
    let longest = i32::MAX.into();
    assert_eq!(
        hidden,
        [
            ("inherited", 60, 62),
            ("longest", i32::MAX, longest),
            ("own", 10, 12)
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_started_task_with_the_longest_timeout_can_be_read_again() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("longest").timeout(i32::MAX)]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    claim_one(&db.pool, worker).await;
    show_all(&db.pool, "orders").await;
    assert!(claim(&db.pool, worker, 1).await.is_empty());
    assert!(messages(&db.pool, "orders").await[0].hidden_for > 2_147_483_600);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_retried_task_counts_its_attempts_and_keeps_its_message() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(3)]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let (first, second) = (
        worker(&db.pool, "orders").await,
        worker(&db.pool, "orders").await,
    );
    let mut seen = Vec::new();
    for worker in [first, second, first] {
        let claimed = claim_one(&db.pool, worker).await;
        seen.push((claimed.attempt, claimed.read_count, claimed.message_id));
        assert_eq!(task(&db.pool, id, "a").await.last_worker_id, Some(worker));
        if claimed.attempt < 3 {
            assert_eq!(fail(&db.pool, &claimed, "again").await, "queued");
        } else {
            assert_eq!(complete(&db.pool, &claimed, json!(0)).await, "completed");
        }
    }
    let message = seen[0].2;
    assert_eq!(seen, [(1, 1, message), (2, 2, message), (3, 3, message)]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_message_that_is_not_visible_yet_is_not_claimed() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("later").start_delay(60)]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    assert!(claim(&db.pool, worker, 1).await.is_empty());
    show_all(&db.pool, "orders").await;
    assert_eq!(claim(&db.pool, worker, 1).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_reads_its_own_queue_only() {
    let db = TestDb::new().await;
    for flow in ["orders", "other"] {
        define(&db.pool, flow, &[step("a")]).await;
        start(&db.pool, flow, json!({})).await;
    }
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].queue_name, "orders");
    assert_eq!(messages(&db.pool, "other").await[0].read_count, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn only_a_registered_running_worker_may_claim() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let unknown = Uuid::now_v7();
    assert_eq!(
        raised(try_claim(&db.pool, unknown, 1).await),
        format!("PF007: worker {unknown} is not registered")
    );
    let stopped = worker(&db.pool, "orders").await;
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(stopped)
        .execute(&db.pool)
        .await
        .expect("stopped");
    assert_eq!(
        raised(try_claim(&db.pool, stopped, 1).await),
        format!("PF007: worker {stopped} is stopped")
    );
    let deprecated = worker(&db.pool, "orders").await;
    sqlx::query("update pgflow.workers set deprecated_at = now() where worker_id = $1")
        .bind(deprecated)
        .execute(&db.pool)
        .await
        .expect("deprecated");
    assert!(claim(&db.pool, deprecated, 1).await.is_empty());
    let message = &messages(&db.pool, "orders").await[0];
    assert_eq!((message.read_count, message.hidden_for), (0, 0));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_asks_for_at_least_one_task() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    for asked in [0, -1] {
        assert_eq!(
            raised(try_claim(&db.pool, worker, asked).await),
            format!("PF009: max_tasks is {asked}; it must be at least 1")
        );
    }
    let null =
        sqlx::query("select pgflow.claim_tasks(worker_id => $1, max_tasks => null)").bind(worker);
    assert_eq!(
        raised(null.execute(&db.pool).await),
        "PF009: max_tasks is <NULL>; it must be at least 1"
    );
    let empty: Vec<Value> =
        sqlx::query_scalar("select to_jsonb(c) from pgflow.claim_tasks($1, 2147483647) c")
            .bind(worker)
            .fetch_all(&db.pool)
            .await
            .expect("an empty queue is fine");
    assert!(empty.is_empty());
}
