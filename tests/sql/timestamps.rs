//! The stamps of a row in each status. Their order is in `run_completion`, and in the invariants
//! that every test checks.

use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;

use crate::support::flows::{claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{claim_all, database_with, fail_for_good, of_step};

/// The stamps that each row of a table has, as `slug status: created started`, in the order of the
/// slugs.
async fn stamps(pool: &PgPool, table: &str) -> Vec<String> {
    let query = format!(
        "select r ->> 'step_slug' || ' ' || (r ->> 'status') || ': ' || (
            select string_agg(left(key, -3), ' ' order by key)
            from jsonb_each(r) where key like '%\\_at' and value <> 'null'
         )
         from pgflow.{table} x, to_jsonb(x) r
         order by x.step_slug"
    );
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_all(pool)
        .await
        .expect("stamps can be read")
}

/// The stamps of the one run.
async fn run_stamps(pool: &PgPool) -> String {
    sqlx::query_scalar(
        "select string_agg(left(key, -3), ' ' order by key)
         from pgflow.runs x, to_jsonb(x) r, jsonb_each(r) where key like '%\\_at' and value <> 'null'",
    )
    .fetch_one(pool)
    .await
    .expect("stamps can be read")
}

#[tokio::test]
async fn a_completed_run_and_its_rows_have_the_stamps_of_their_ways() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b").deps(&["a"]),
        step("skipped").when_exhausted("skip"),
        step("unmet").required(json!({"never": 1})),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    assert_eq!(run_stamps(&db.pool).await, "started");
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&claimed, "a"), json!(1)).await;
    assert_eq!(
        stamps(&db.pool, "step_tasks").await,
        [
            "a completed: completed queued started",
            "b queued: queued",
            "skipped started: queued started",
        ]
    );
    assert_eq!(
        stamps(&db.pool, "step_states").await,
        [
            "a completed: completed created started",
            "b started: created started",
            "skipped started: created started",
            "unmet skipped: created skipped",
        ]
    );
    fail_for_good(&db.pool, of_step(&claimed, "skipped"), "no").await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        stamps(&db.pool, "step_states").await[2],
        "skipped skipped: created skipped started"
    );
    assert_eq!(
        stamps(&db.pool, "step_tasks").await[2],
        "skipped failed: failed queued started"
    );
    assert_eq!(run_stamps(&db.pool).await, "completed started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failed_run_and_its_rows_have_the_stamps_of_their_ways() {
    let (db, worker) = database_with(&[
        step("culprit"),
        step("done"),
        step("never").deps(&["culprit"]),
        step("retried"),
        step("running"),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&claimed, "done"), json!(1)).await;
    fail(&db.pool, of_step(&claimed, "retried"), "again").await;
    assert_eq!(
        stamps(&db.pool, "step_tasks").await[2],
        "retried queued: queued",
        "it has not started again"
    );
    fail_for_good(&db.pool, of_step(&claimed, "culprit"), "no").await;
    assert_eq!(
        stamps(&db.pool, "step_tasks").await,
        [
            "culprit failed: failed queued started",
            "done completed: completed queued started",
            "retried cancelled: queued",
            "running cancelled: queued started",
        ]
    );
    assert_eq!(
        stamps(&db.pool, "step_states").await,
        [
            "culprit failed: created failed started",
            "done completed: completed created started",
            "never created: created",
            "retried started: created started",
            "running started: created started",
        ]
    );
    assert_eq!(run_stamps(&db.pool).await, "failed started");
    assert_invariants(&db.pool).await;
}
