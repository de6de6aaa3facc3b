//! Notifications of work beside transactions that take long: no start waits for one, fails because
//! of one, or is silenced by one.

use serde_json::json;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, PgTransaction};

use crate::support::TestDb;
use crate::support::flows::{claim, claim_one, complete, define, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::operations::Hints;
use crate::support::sessions::{holding, without_waiting};

async fn with_flow() -> TestDb {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a"), step("b").deps(&["a"])]).await;
    db
}

/// A transaction that has looked at what wakes workers already.
async fn looking(pool: &PgPool, level: &str) -> PgTransaction<'static> {
    let begin = AssertSqlSafe(format!("begin transaction isolation level {level}"));
    let mut transaction = pool.begin_with(begin).await.expect("a session");
    sqlx::query("select from pgflow.wakeups")
        .execute(&mut *transaction)
        .await
        .expect("the table can be read");
    transaction
}

#[tokio::test]
async fn whoever_notifies_in_a_long_transaction_holds_up_and_silences_nobody() {
    let db = with_flow().await;
    let mut hints = Hints::listen(&db.pool).await;
    let mut long = db.pool.begin().await.expect("a first session");
    start(&mut *long, "f", json!({})).await;
    for _ in 0..3 {
        without_waiting(start(&db.pool, "f", json!({}))).await;
        assert_eq!(hints.queues(&db.pool).await, ["f"]);
    }
    long.commit().await.expect("committed");
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn whoever_notified_and_gave_up_silences_nobody() {
    let db = with_flow().await;
    let mut hints = Hints::listen(&db.pool).await;
    let mut first = db.pool.begin().await.expect("a first session");
    start(&mut *first, "f", json!({})).await;
    first.rollback().await.expect("given up");
    assert_eq!(hints.queues(&db.pool).await, [] as [&str; 0]);
    start(&db.pool, "f", json!({})).await;
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_row_that_is_locked_for_long_is_not_waited_for_by_anything_that_notifies() {
    let db = with_flow().await;
    let worker = worker(&db.pool, "f").await;
    let mut hints = Hints::listen(&db.pool).await;
    let lock = holding(&db.pool, "select from pgflow.wakeups for update").await;
    let run = without_waiting(start(&db.pool, "f", json!({}))).await;
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    let task = claim_one(&db.pool, worker).await;
    without_waiting(complete(&db.pool, &task, json!(1))).await;
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    let task = claim_one(&db.pool, worker).await;
    let release = sqlx::query_scalar::<_, i32>(
        "select pgflow.release_tasks($1, array[$2], '{b}', '{0}', array[$3])",
    )
    .bind(worker)
    .bind(run)
    .bind(task.attempt)
    .fetch_one(&db.pool);
    assert_eq!(without_waiting(release).await.expect("given back"), 1);
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    lock.rollback().await.expect("given up");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_starts_in_any_isolation_whoever_else_has_started_one_since() {
    for level in ["repeatable read", "serializable"] {
        let db = with_flow().await;
        let mut hints = Hints::listen(&db.pool).await;
        let mut starting = looking(&db.pool, level).await;
        // Its stamp is one that the transaction can't see.
        start(&db.pool, "f", json!({})).await;
        assert_eq!(hints.queues(&db.pool).await, ["f"]);
        start(&mut *starting, "f", json!({})).await;
        start(&db.pool, "f", json!({})).await;
        start(&mut *starting, "f", json!({})).await;
        starting.commit().await.expect("committed");
        let queues = hints.queues(&db.pool).await;
        assert_eq!(queues.last().map(String::as_str), Some("f"), "{level}");
        let worker = worker(&db.pool, "f").await;
        assert_eq!(claim(&db.pool, worker, 9).await.len(), 4, "{level}");
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn two_starts_at_once_in_any_isolation_both_succeed() {
    for level in ["repeatable read", "serializable"] {
        let db = with_flow().await;
        let mut hints = Hints::listen(&db.pool).await;
        let mut first = looking(&db.pool, level).await;
        let mut second = looking(&db.pool, level).await;
        start(&mut *first, "f", json!({})).await;
        without_waiting(start(&mut *second, "f", json!({}))).await;
        first.commit().await.expect("committed");
        second.commit().await.expect("committed");
        assert_eq!(hints.queues(&db.pool).await, ["f", "f"], "{level}");
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn an_isolated_transaction_leaves_the_throttle_alone() {
    let db = with_flow().await;
    let mut hints = Hints::listen(&db.pool).await;
    for level in ["repeatable read", "serializable"] {
        let mut session = looking(&db.pool, level).await;
        start(&mut *session, "f", json!({})).await;
        session.commit().await.expect("committed");
        assert_eq!(hints.queues(&db.pool).await, ["f"], "{level}");
        let untouched: bool =
            sqlx::query_scalar("select notified_at = '-infinity' from pgflow.wakeups")
                .fetch_one(&db.pool)
                .await
                .expect("one queue");
        assert!(untouched, "{level}");
    }
    assert_invariants(&db.pool).await;
}
