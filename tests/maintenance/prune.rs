//! Removal of old runs.

use std::time::Duration;

use pgflow::RefusalCode;
use pgflow::maintenance::{prunable, prune};
use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, drain, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::database_with;

const DAY: Duration = Duration::from_hours(24);

/// Runs of a list with two elements each, so of three tasks, that ended so many days ago.
async fn runs_that_ended(days_ago: &[i32]) -> (TestDb, Uuid) {
    let (db, worker) = database_with(&[step("list"), step("each").map().deps(&["list"])]).await;
    for days in days_ago {
        let id = start(&db.pool, "f", json!({})).await;
        drain(&db.pool, worker, |_| json!([1, 2])).await;
        age(&db.pool, id, *days).await;
    }
    (db, worker)
}

/// Makes a run look as if everything in it had happened this many days earlier.
async fn age(pool: &PgPool, run_id: Uuid, days: i32) {
    for (table, columns) in [
        ("runs", &["started_at", "completed_at"][..]),
        ("step_states", &["created_at", "started_at", "completed_at"]),
        ("step_tasks", &["queued_at", "started_at", "completed_at"]),
    ] {
        let changes = columns
            .iter()
            .map(|column| format!("{column} = {column} - make_interval(days => $2)"));
        let changes = changes.collect::<Vec<_>>().join(", ");
        let change = format!("update pgflow.{table} set {changes} where run_id = $1");
        let aged = sqlx::query(AssertSqlSafe(change)).bind(run_id).bind(days);
        aged.execute(pool).await.expect("rows can be aged");
    }
}

async fn counted(pool: &PgPool, older_than: Duration) -> [i64; 2] {
    let found = prunable(pool, older_than).await.expect("counted");
    [found.runs, found.tasks]
}

#[tokio::test]
async fn a_call_removes_a_batch_and_the_count_agrees() {
    let (db, _) = runs_that_ended(&[1, 40, 20, 30]).await;
    assert_eq!(counted(&db.pool, 15 * DAY).await, [3, 9]);
    let mut removed = Vec::new();
    while removed.last() != Some(&0) {
        removed.push(prune(&db.pool, 15 * DAY, 2).await.expect("removed"));
    }
    assert_eq!(removed, [2, 1, 0]);
    assert_eq!(counted(&db.pool, 15 * DAY).await, [0, 0]);
    assert_eq!(counted(&db.pool, Duration::ZERO).await, [1, 3]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_whose_end_step_is_at_work_is_neither_counted_nor_removed() {
    let (db, worker) = database_with(&[step("work"), step("tidy").on("end")]).await;
    let id = start(&db.pool, "f", json!({})).await;
    let work = claim_one(&db.pool, worker).await;
    complete(&db.pool, &work, json!(1)).await;
    let tidy = claim_one(&db.pool, worker).await;
    age(&db.pool, id, 40).await;
    assert_eq!(counted(&db.pool, 15 * DAY).await, [0, 0]);
    assert_eq!(prune(&db.pool, 15 * DAY, 2).await.expect("none"), 0);
    complete(&db.pool, &tidy, json!(1)).await;
    assert_eq!(counted(&db.pool, 15 * DAY).await, [1, 2]);
    assert_eq!(prune(&db.pool, 15 * DAY, 2).await.expect("removed"), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_has_not_ended_is_neither_counted_nor_removed() {
    let (db, worker) = runs_that_ended(&[]).await;
    start(&db.pool, "f", json!({})).await;
    sqlx::query("update pgflow.runs set started_at = started_at - interval '1 year'")
        .execute(&db.pool)
        .await
        .expect("rows can be aged");
    assert_eq!(counted(&db.pool, Duration::ZERO).await, [0, 0]);
    assert_eq!(prune(&db.pool, Duration::ZERO, 10).await.expect("none"), 0);
    assert_eq!(drain(&db.pool, worker, |_| json!([])).await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_day_has_24_hours_in_every_time_zone() {
    let (db, _) = runs_that_ended(&[0]).await;
    let mut session = db.pool.begin().await.expect("a session");
    // Between these days and today, the clocks have changed an odd number of times somewhere in
    // each pair of time zones.
    for zone in ["America/New_York", "Australia/Sydney"] {
        sqlx::query("select set_config('timezone', $1, true)")
            .bind(zone)
            .execute(&mut *session)
            .await
            .expect("a time zone");
        for days in [60_i32, 120, 180, 240, 300] {
            for (seconds, runs) in [(1, 1), (-1, 0)] {
                sqlx::query(
                    "update pgflow.runs set completed_at = now() - make_interval(hours => $1 * 24, secs => $2), \
                        started_at = now() - interval '2 years'",
                )
                .bind(days)
                .bind(f64::from(seconds))
                .execute(&mut *session)
                .await
                .expect("rows can be aged");
                let older_than = DAY * days.unsigned_abs();
                let found = prunable(&mut *session, older_than).await.expect("counted");
                assert_eq!(found.runs, runs, "{zone} {days} {seconds}");
            }
        }
    }
    session.rollback().await.expect("undone");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn nothing_is_older_than_the_longest_duration() {
    let (db, _) = runs_that_ended(&[1000]).await;
    assert_eq!(counted(&db.pool, Duration::MAX).await, [0, 0]);
    let removed = prune(&db.pool, Duration::MAX, u32::MAX).await;
    assert_eq!(removed.expect("none"), 0);
    let removed = prune(&db.pool, 999 * DAY, u32::MAX).await;
    assert_eq!(removed.expect("removed"), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_batch_of_no_runs_is_refused() {
    let db = TestDb::new().await;
    let error = prune(&db.pool, DAY, 0).await.expect_err("refused");
    assert_eq!(error.refusal(), Some(RefusalCode::InvalidArgument));
}
