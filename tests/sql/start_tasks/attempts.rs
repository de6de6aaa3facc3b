//! The attempts of a task that `start_tasks` starts: whose they are, when they began, how they
//! follow each other.

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::{read, started};
use crate::support::TestDb;
use crate::support::flows::{define, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{task, tasks};
use crate::support::sessions::without_waiting;

async fn fail_by_sql(pool: &PgPool, run_id: Uuid) {
    sqlx::query("select pgflow.fail_task($1, 'a', 0, 'no')")
        .bind(run_id)
        .execute(pool)
        .await
        .expect("failed");
}

/// The statuses that the one task of a run went through.
async fn course(pool: &PgPool, run_id: Uuid) -> String {
    sqlx::query_scalar(
        "select string_agg(new_status, ', ' order by n) from test_log.transitions where run_id = $1 and kind = 'task'",
    )
    .bind(run_id)
    .fetch_one(pool)
    .await
    .expect("the log can be read")
}

#[tokio::test]
async fn a_task_is_queued_then_started_then_completed() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    started(&db.pool, worker, &ids).await;
    sqlx::query("select pgflow.complete_task($1, 'a', 0, '1')")
        .bind(id)
        .execute(&db.pool)
        .await
        .expect("completed");
    assert_eq!(course(&db.pool, id).await, "queued, started, completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failed_attempt_is_queued_again_and_the_last_one_is_the_end() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(2)]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    for _ in 0..2 {
        let ids = read(&db.pool, "orders").await;
        assert_eq!(started(&db.pool, worker, &ids).await.len(), 1);
        fail_by_sql(&db.pool, id).await;
    }
    assert_eq!(
        course(&db.pool, id).await,
        "queued, started, queued, started, failed"
    );
    assert_eq!(task(&db.pool, id, "a").await.attempts_count, 2);
    assert!(read(&db.pool, "orders").await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn each_start_is_stamped_anew_and_a_task_that_waits_has_no_stamp() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let stamp = async || {
        sqlx::query_as::<_, (Option<i64>, bool)>(
            "select (extract(epoch from started_at) * 1000000)::bigint, coalesce(started_at >= queued_at, true) from pgflow.step_tasks",
        )
        .fetch_one(&db.pool)
        .await
        .expect("the task can be read")
    };
    assert_eq!(stamp().await, (None, true));
    let mut starts = Vec::new();
    for _ in 0..2 {
        let ids = read(&db.pool, "orders").await;
        started(&db.pool, worker, &ids).await;
        let (at, in_order) = stamp().await;
        assert!(in_order, "a start comes after the queueing");
        starts.push(at.expect("a stamp"));
        fail_by_sql(&db.pool, id).await;
        assert_eq!(stamp().await, (None, true));
    }
    assert!(starts[0] < starts[1], "{starts:?}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn all_that_a_worker_starts_at_once_is_its_own() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let id = start(&db.pool, "orders", json!([0, 1, 2, 3])).await;
    let (one, other) = (
        worker(&db.pool, "orders").await,
        worker(&db.pool, "orders").await,
    );
    let ids = read(&db.pool, "orders").await;
    let each = |indexes: &[i64]| -> Vec<(String, i64)> {
        indexes.iter().map(|&n| ("each".to_owned(), n)).collect()
    };
    assert_eq!(started(&db.pool, one, &ids[..3]).await, each(&[0, 1, 2]));
    // What the other one has is not for this one to start.
    assert_eq!(started(&db.pool, other, &ids[1..]).await, each(&[3]));
    let workers: Vec<Option<Uuid>> = tasks(&db.pool, id, "each")
        .await
        .into_iter()
        .map(|task| task.last_worker_id)
        .collect();
    assert_eq!(workers, [Some(one), Some(one), Some(one), Some(other)]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_workers_that_read_one_message_start_its_task_once() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let (one, other) = (
        worker(&db.pool, "orders").await,
        worker(&db.pool, "orders").await,
    );
    let ids = read(&db.pool, "orders").await;
    let mut first = db.pool.begin().await.expect("a first session");
    let rows = sqlx::query("select from pgflow.start_tasks('orders', $1, $2, 'orders')")
        .bind(&ids)
        .bind(one)
        .fetch_all(&mut *first)
        .await
        .expect("started");
    assert_eq!(rows.len(), 1);
    let second = without_waiting(started(&db.pool, other, &ids)).await;
    assert!(second.is_empty(), "{second:?}");
    first.commit().await.expect("committed");
    assert!(started(&db.pool, other, &ids).await.is_empty());
    let task = task(&db.pool, id, "a").await;
    assert_eq!((task.attempts_count, task.last_worker_id), (1, Some(one)));
    assert_invariants(&db.pool).await;
}
