//! `release_tasks`: what a worker that stops returns.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    Claimed, claim, claim_one, complete, define, fail, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, raised, run, task, tasks};
use crate::support::runs::{age, requeue};

async fn try_release(pool: &PgPool, worker: Uuid, tasks: &[Claimed]) -> sqlx::Result<i32> {
    sqlx::query_scalar(
        "select pgflow.release_tasks(worker_id => $1, run_ids => $2, step_slugs => $3, task_indexes => $4, attempts => $5)",
    )
    .bind(worker)
    .bind(tasks.iter().map(|task| task.run_id).collect::<Vec<_>>())
    .bind(tasks.iter().map(|task| task.step_slug.clone()).collect::<Vec<_>>())
    .bind(tasks.iter().map(|task| task.task_index).collect::<Vec<_>>())
    .bind(tasks.iter().map(|task| task.attempt).collect::<Vec<_>>())
    .fetch_one(pool)
    .await
}

async fn release(pool: &PgPool, worker: Uuid, tasks: &[Claimed]) -> i32 {
    try_release(pool, worker, tasks).await.expect("released")
}

#[tokio::test]
async fn a_released_task_waits_again_at_once_and_its_attempt_is_not_counted() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let stopping = worker(&db.pool, "orders").await;
    let claimed = claim_one(&db.pool, stopping).await;
    assert_eq!(
        release(&db.pool, stopping, std::slice::from_ref(&claimed)).await,
        1
    );

    let released = task(&db.pool, id, "a").await;
    assert_eq!(
        (released.status.as_str(), released.attempts_count),
        ("queued", 1)
    );
    assert_eq!(released.last_worker_id, None);
    assert_invariants(&db.pool).await;

    let next = worker(&db.pool, "orders").await;
    let again = claim_one(&db.pool, next).await;
    assert_eq!(
        (again.attempt, again.max_attempts, again.read_count),
        (2, 4, 2)
    );
    assert_eq!(again.message_id, claimed.message_id);
    assert_eq!(complete(&db.pool, &again, json!(1)).await, "completed");
    assert_invariants(&db.pool).await;
}

/// A call whose answer was lost is made again, and by then the same worker may run the task again.
#[tokio::test]
async fn a_release_that_is_made_again_never_takes_the_next_start_of_the_same_worker() {
    const RELEASE: &str = "select pgflow.release_tasks(worker_id => $1, run_ids => array[$2], step_slugs => '{a}', task_indexes => '{0}',
         attempts => '{1}', starts => array[$3])";
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let release = async |started_at: DateTime<Utc>| -> i32 {
        sqlx::query_scalar(RELEASE)
            .bind(worker)
            .bind(id)
            .bind(started_at)
            .fetch_one(&db.pool)
            .await
            .expect("released")
    };
    let first = claim_one(&db.pool, worker).await.started_at;
    assert_eq!(release(first).await, 1);
    let again = claim_one(&db.pool, worker).await;
    assert_eq!(again.attempt, 2, "each start has a number of its own");
    assert_eq!(release(first).await, 0, "that start was given back before");
    assert_eq!(complete(&db.pool, &again, json!(1)).await, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn only_the_attempt_that_was_given_back_is_not_counted() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(2)]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let first = claim_one(&db.pool, worker).await;
    fail(&db.pool, &first, "once").await;
    let second = claim_one(&db.pool, worker).await;
    release(&db.pool, worker, &[second]).await;
    let uncounted: i32 = sqlx::query_scalar("select uncounted_attempts from pgflow.step_tasks")
        .fetch_one(&db.pool)
        .await
        .expect("the task can be read");
    assert_eq!(
        (task(&db.pool, id, "a").await.attempts_count, uncounted),
        (2, 1)
    );
    let last = claim_one(&db.pool, worker).await;
    assert_eq!((last.attempt, last.max_attempts), (3, 3));
    assert_eq!(fail(&db.pool, &last, "twice").await, "failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn only_what_this_worker_runs_is_given_back() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let id = start(&db.pool, "orders", json!([0, 1, 2, 3])).await;
    let (mine, other) = (
        worker(&db.pool, "orders").await,
        worker(&db.pool, "orders").await,
    );
    let mut all = claim(&db.pool, mine, 2).await;
    all.extend(claim(&db.pool, other, 1).await);
    complete(&db.pool, &all[0], json!(0)).await;
    // Twice, one that nobody claimed, and one that does not exist.
    all.push(all[1].clone());
    all.push(Claimed {
        task_index: 3,
        ..all[1].clone()
    });
    all.push(Claimed {
        task_index: 4,
        ..all[1].clone()
    });
    assert_eq!(release(&db.pool, mine, &all).await, 1);
    let statuses: Vec<String> = tasks(&db.pool, id, "each")
        .await
        .into_iter()
        .map(|t| t.status)
        .collect();
    assert_eq!(statuses, ["completed", "queued", "started", "queued"]);
    assert_eq!(release(&db.pool, mine, &all).await, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn tasks_of_an_ended_run_are_not_given_back() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(1), step("b")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    fail(&db.pool, &claimed[0], "no").await;
    assert_eq!(release(&db.pool, worker, &claimed).await, 0);
    assert_eq!(task(&db.pool, id, "b").await.status, "cancelled");
    assert!(messages(&db.pool, "orders").await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn tasks_of_several_runs_and_flows_go_back_together() {
    let db = TestDb::new().await;
    for flow in ["orders", "other"] {
        define(&db.pool, flow, &[step("a")]).await;
    }
    let worker = worker(&db.pool, "orders").await;
    start(&db.pool, "orders", json!(1)).await;
    start(&db.pool, "orders", json!(2)).await;
    let mut claimed = claim(&db.pool, worker, 2).await;
    sqlx::query("update pgflow.workers set flow_slug = 'other', queue_name = 'other'")
        .execute(&db.pool)
        .await
        .expect("moved");
    start(&db.pool, "other", json!(3)).await;
    claimed.extend(claim(&db.pool, worker, 1).await);
    assert_eq!(release(&db.pool, worker, &claimed).await, 3);
    let visible: Vec<Value> = sqlx::query_scalar(
        "select message from pgmq.read('orders', 0, 10) union all select message from pgmq.read('other', 0, 10)",
    )
    .fetch_all(&db.pool)
    .await
    .expect("queues can be read");
    assert_eq!(visible.len(), 3);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn arrays_of_different_lengths_are_refused_and_nothing_is_nothing() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    for call in [
        "select pgflow.release_tasks($1, array[gen_random_uuid()], array['a', 'b'], array[0], array[1])",
        "select pgflow.release_tasks($1, array[gen_random_uuid()], array['a'], '{}', array[1])",
        "select pgflow.release_tasks($1, array[gen_random_uuid()], array['a'], array[0], '{}')",
        "select pgflow.release_tasks($1, array[gen_random_uuid()], null, array[0], array[1])",
        "select pgflow.release_tasks($1, array[gen_random_uuid()], array['a'], array[0], array[1], '{}')",
    ] {
        assert_eq!(
            raised(sqlx::query(call).bind(worker).execute(&db.pool).await),
            "PF009: release_tasks got arrays of different lengths"
        );
    }
    assert_eq!(release(&db.pool, worker, &[]).await, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_without_its_message_stays_started_and_the_others_go_back() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let id = start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    sqlx::query("delete from pgmq.q_orders where msg_id = $1")
        .bind(claimed[1].message_id)
        .execute(&db.pool)
        .await
        .expect("lost");
    assert_eq!(release(&db.pool, worker, &claimed).await, 1);
    let statuses: Vec<(String, i32)> = tasks(&db.pool, id, "each")
        .await
        .into_iter()
        .map(|task| (task.status, task.attempts_count))
        .collect();
    let expected = [("queued".to_owned(), 1), ("started".to_owned(), 1)];
    assert_eq!(statuses, expected);

    // Recovery ends it, once it is overdue.
    age(&db.pool, id, "each", 3600).await;
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(run(&db.pool, id).await.status, "failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_attempt_that_is_no_longer_the_current_one_is_not_given_back() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let first = claim_one(&db.pool, worker).await;
    fail(&db.pool, &first, "again").await;
    let second = claim_one(&db.pool, worker).await;

    assert_eq!(release(&db.pool, worker, &[first]).await, 0);
    let running = task(&db.pool, id, "a").await;
    let now = (running.status.as_str(), running.attempts_count);
    assert_eq!(now, ("started", 2));
    assert_eq!(release(&db.pool, worker, &[second]).await, 1);
    assert_invariants(&db.pool).await;
}
