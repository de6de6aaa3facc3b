//! A clock that was set back, as by a failover to a server whose clock is behind: what happened so
//! far happened in the future.

use serde_json::json;
use sqlx::postgres::PgPool;

use crate::support::flows::{claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{
    age, claim_all, database_with, fail_for_good, of_step, outline, requeue,
};

/// Moves all that has happened in live runs an hour into the future.
async fn set_clock_back(pool: &PgPool) {
    for change in [
        "update pgflow.runs set started_at = started_at + interval '1 hour' where status = 'started'",
        "update pgflow.step_states s
         set created_at = r.started_at, started_at = case when s.started_at is not null then r.started_at end
         from pgflow.runs r where r.run_id = s.run_id and r.status = 'started'",
        "update pgflow.step_tasks t
         set queued_at = r.started_at, started_at = case when t.started_at is not null then r.started_at end
         from pgflow.runs r where r.run_id = t.run_id and r.status = 'started'",
    ] {
        let moved = sqlx::query(change).execute(pool).await;
        moved.expect("rows can be moved");
    }
}

#[tokio::test]
async fn a_run_completes() {
    let (db, worker) = database_with(&[
        step("a"),
        step("empty").map().deps(&["a"]),
        step("skipped").deps(&["a"]).required(json!({"a": 1})),
        step("b").deps(&["a"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    set_clock_back(&db.pool).await;
    complete(&db.pool, &claimed, json!([])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a completed, empty completed, skipped skipped: condition_unmet, b started"
    );
    assert_invariants(&db.pool).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed, empty completed, skipped skipped: condition_unmet, b completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_fails() {
    let (db, worker) = database_with(&[step("a"), step("b").when_exhausted("skip")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    set_clock_back(&db.pool).await;
    fail(&db.pool, of_step(&claimed, "a"), "again").await;
    fail_for_good(&db.pool, of_step(&claimed, "b"), "skips").await;
    let again = claim_one(&db.pool, worker).await;
    fail_for_good(&db.pool, &again, "no").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, a failed, b skipped: handler_failed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_stalled_task_is_recovered_once_its_time_has_come() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    set_clock_back(&db.pool).await;
    assert_eq!(requeue(&db.pool).await, 0);
    age(&db.pool, run_id, "a", 2 * 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed"
    );
    assert_invariants(&db.pool).await;
}
