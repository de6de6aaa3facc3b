//! `delete_flow_batch`: a flow goes in parts, and nobody else waits.

use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgExecutor, PgPool};
use uuid::Uuid;

use super::delete_flow_and_data::{known, try_delete};
use crate::support::TestDb;
use crate::support::flows::{
    FUNCTION, claim, define, drain, raw_claim, shape, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};
use crate::support::sessions::{until_blocked, without_waiting};

async fn try_batch(
    db: impl PgExecutor<'_>,
    flow: &str,
    max_runs: i32,
) -> sqlx::Result<(i64, bool)> {
    sqlx::query_as("select removed_runs, is_done from pgflow.delete_flow_batch($1, $2)")
        .bind(flow)
        .bind(max_runs)
        .fetch_one(db)
        .await
}

async fn batch(db: impl PgExecutor<'_>, max_runs: i32) -> (i64, bool) {
    let removed = try_batch(db, "orders", max_runs).await;
    removed.expect("removed")
}

/// Flow `orders` with five runs, one of which is completed and one under way; and its worker.
async fn orders(pool: &PgPool) -> Uuid {
    define(pool, "orders", &[step("a"), step("b").map().deps(&["a"])]).await;
    let worker = worker(pool, "orders").await;
    start(pool, "orders", json!({})).await;
    drain(pool, worker, |_| json!([1])).await;
    for _ in 0..4 {
        start(pool, "orders", json!({})).await;
    }
    claim(pool, worker, 1).await;
    worker
}

#[tokio::test]
async fn each_call_removes_a_part_and_the_last_one_the_flow() {
    let db = TestDb::new().await;
    define(&db.pool, "other", &[step("a")]).await;
    for _ in 0..3 {
        start(&db.pool, "other", json!({})).await;
    }
    let others = worker(&db.pool, "other").await;
    claim(&db.pool, others, 1).await;
    let before = known(&db.pool).await;
    orders(&db.pool).await;
    start(&db.pool, "other", json!({})).await;

    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(batch(&db.pool, 2).await);
    }
    let (marked, gone) = ((0, false), (0, true));
    assert_eq!(calls, [marked, (2, false), (2, false), (1, false), gone]);
    assert_eq!(known(&db.pool).await, before);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 4);
    assert_eq!(
        raised(try_batch(&db.pool, "orders", 2).await),
        "PF001: flow \"orders\" is not defined in this database; nothing was deleted"
    );
    let refused = raised(try_batch(&db.pool, "orders", 0).await);
    assert!(refused.starts_with("PF009: "), "{refused}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn nothing_starts_of_a_flow_that_is_being_deleted_until_it_is_gone() {
    let db = TestDb::new().await;
    let old = orders(&db.pool).await;
    batch(&db.pool, 2).await;
    let steps = [step("a"), step("b").map().deps(&["a"])];
    let compile = format!(
        "select pgflow.ensure_flow_compiled('orders', '{}')",
        shape(&steps)
    );
    for call in [
        "select pgflow.start_flow('orders', '{}')".to_owned(),
        "select pgflow.start_flows('orders', array['1', '2']::jsonb[])".to_owned(),
        format!(
            "select pgflow.register_worker(gen_random_uuid(), '{FUNCTION}', 'orders', null, 'orders', '{{}}')"
        ),
        compile.clone(),
    ] {
        let refused = sqlx::query(AssertSqlSafe(call)).execute(&db.pool).await;
        let refused = raised(refused);
        assert!(
            refused.starts_with("PF001: flow \"orders\" is being deleted since "),
            "{refused}"
        );
    }
    assert!(raw_claim(&db.pool, old, 10).await.is_empty());
    while !batch(&db.pool, 2).await.1 {}
    sqlx::query(AssertSqlSafe(compile))
        .execute(&db.pool)
        .await
        .expect("it can be defined anew");
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    assert_eq!(claim(&db.pool, worker, 10).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_batch_waits_for_a_run_that_is_being_started() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut starting = db.pool.begin().await.expect("a first session");
    start(&mut *starting, "orders", json!({})).await;
    let deleting = until_blocked(&db.pool, |mut second| async move {
        batch(&mut *second, 10).await
    })
    .await;
    starting.commit().await.expect("committed");
    assert_eq!(deleting.await.expect("answered"), (0, false));
    assert_eq!(batch(&db.pool, 10).await, (1, false));
    assert_eq!(batch(&db.pool, 10).await, (0, true));
    assert_eq!(known(&db.pool).await, [""; 0]);
}

/// However long a deletion lasts, be it a single call.
#[tokio::test]
async fn workers_and_runs_of_other_flows_start_while_a_flow_is_deleted() {
    let db = TestDb::new().await;
    define(&db.pool, "other", &[step("a")]).await;
    for in_batches in [true, false] {
        orders(&db.pool).await;
        let mut deleting = db.pool.begin().await.expect("a first session");
        if in_batches {
            for _ in 0..2 {
                batch(&mut *deleting, 10).await;
            }
        } else {
            let deleted = try_delete(&mut *deleting, "orders").await;
            deleted.expect("deleted");
        }
        let compiling =
            sqlx::query_scalar("select pgflow.ensure_flow_compiled('other', $1) ->> 'status'")
                .bind(shape(&[step("a")]))
                .fetch_one(&db.pool);
        let status: String = without_waiting(compiling).await.expect("an answer");
        assert_eq!(status, "verified");
        let worker = without_waiting(worker(&db.pool, "other")).await;
        without_waiting(start(&db.pool, "other", json!({}))).await;
        let claimed = without_waiting(claim(&db.pool, worker, 1)).await;
        assert_eq!(claimed.len(), 1);
        if in_batches {
            // No flow is kept from being defined either.
            without_waiting(define(&db.pool, "new", &[step("a")])).await;
        }
        deleting.commit().await.expect("committed");
        while in_batches && !batch(&db.pool, 10).await.1 {}
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_that_delete_the_same_flow_get_along() {
    let db = TestDb::new().await;
    orders(&db.pool).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(batch(&mut *first, 3).await, (0, false));
    assert_eq!(batch(&mut *first, 3).await, (3, false));
    let second = until_blocked(&db.pool, |mut second| async move {
        batch(&mut *second, 3).await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("answered"), (2, false));
    let mut last = db.pool.begin().await.expect("a first session");
    assert_eq!(batch(&mut *last, 3).await, (0, true));
    let late = until_blocked(&db.pool, |mut second| async move {
        try_batch(&mut *second, "orders", 3).await
    })
    .await;
    last.commit().await.expect("committed");
    let late = raised(late.await.expect("answered"));
    assert!(late.starts_with("PF001: "), "{late}");
    assert_eq!(known(&db.pool).await, [""; 0]);
}

#[tokio::test]
async fn a_batch_that_is_undone_leaves_everything_as_it_was() {
    let db = TestDb::new().await;
    let worker = orders(&db.pool).await;
    let before = known(&db.pool).await;
    let mut session = db.pool.begin().await.expect("a session");
    for _ in 0..2 {
        batch(&mut *session, 10).await;
    }
    session.rollback().await.expect("undone");
    assert_eq!(known(&db.pool).await, before);
    start(&db.pool, "orders", json!({})).await;
    assert_eq!(claim(&db.pool, worker, 10).await.len(), 4);
    assert_invariants(&db.pool).await;
}
