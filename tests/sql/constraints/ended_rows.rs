//! The constraints of the tables on ended rows, for every writer: outputs, sizes and stamps that
//! contradict a status.

use serde_json::json;
use sqlx::postgres::PgPool;

use super::refused_by;
use crate::support::TestDb;
use crate::support::flows::{complete, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{claim_all, database_with, fail_for_good, of_step};

async fn assert_refused(pool: &PgPool, changes: &[(&str, &str)]) {
    for (change, constraint) in changes {
        assert_eq!(&refused_by(pool, change).await, constraint, "{change}");
    }
}

/// A flow with a step in each status, and a failed run beside it.
async fn a_step_in_each_status() -> TestDb {
    let (db, worker) = database_with(&[
        step("completed"),
        step("skipped").when_exhausted("skip"),
        step("started"),
        step("created").map().deps(&["started"]),
        step("failed"),
    ])
    .await;
    for fails in [true, false] {
        start(&db.pool, "f", json!({})).await;
        let claimed = claim_all(&db.pool, worker).await;
        complete(&db.pool, of_step(&claimed, "completed"), json!(1)).await;
        fail_for_good(&db.pool, of_step(&claimed, "skipped"), "no").await;
        if fails {
            fail_for_good(&db.pool, of_step(&claimed, "failed"), "no").await;
        }
    }
    assert_invariants(&db.pool).await;
    db
}

#[tokio::test]
async fn only_a_completed_step_has_an_output() {
    let db = a_step_in_each_status().await;
    for status in ["created", "started", "failed", "skipped"] {
        let change =
            format!("update pgflow.step_states set output = '1' where status = '{status}'");
        let constraint = refused_by(&db.pool, &change).await;
        assert_eq!(constraint, "output_only_for_completed", "{status}");
    }
}

#[tokio::test]
async fn a_step_without_a_size_can_not_start() {
    let db = a_step_in_each_status().await;
    assert_refused(
        &db.pool,
        &[
            (
                "update pgflow.step_states set status = 'started' where status = 'created'",
                "initial_tasks_known_when_started",
            ),
            (
                "update pgflow.step_states set initial_tasks = null where status = 'started'",
                "initial_tasks_known_when_started",
            ),
            (
                "update pgflow.step_states set initial_tasks = -1 where status = 'created'",
                "initial_tasks_is_nonnegative",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn each_status_has_its_stamp_and_no_other() {
    let db = a_step_in_each_status().await;
    assert_refused(
        &db.pool,
        &[
            (
                "update pgflow.runs set completed_at = now() where status = 'failed'",
                "status_matches_timestamps",
            ),
            (
                "update pgflow.runs set failed_at = null where status = 'failed'",
                "status_matches_timestamps",
            ),
            (
                "update pgflow.step_states set skipped_at = clock_timestamp() where status = 'completed'",
                "status_matches_timestamps",
            ),
            (
                "update pgflow.step_states set failed_at = null where status = 'failed'",
                "status_matches_timestamps",
            ),
            (
                "update pgflow.step_tasks set completed_at = clock_timestamp() where status = 'failed'",
                "status_matches_timestamps",
            ),
            (
                "update pgflow.step_tasks set started_at = null where status = 'started'",
                "started_needs_started_at",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn stamps_are_in_order() {
    let db = a_step_in_each_status().await;
    let earlier = "'2000-01-01'";
    for (table, column, status, constraint) in [
        (
            "runs",
            "failed_at",
            "failed",
            "failed_at_is_after_started_at",
        ),
        (
            "step_states",
            "started_at",
            "started",
            "started_at_is_after_created_at",
        ),
        (
            "step_states",
            "completed_at",
            "completed",
            "completed_at_is_after_started_at",
        ),
        (
            "step_states",
            "failed_at",
            "failed",
            "failed_at_is_after_started_at",
        ),
        (
            "step_states",
            "skipped_at",
            "skipped",
            "skipped_at_is_after_created_at",
        ),
        (
            "step_tasks",
            "started_at",
            "started",
            "started_at_is_after_queued_at",
        ),
        (
            "step_tasks",
            "completed_at",
            "completed",
            "completed_at_is_after_started_at",
        ),
        (
            "step_tasks",
            "failed_at",
            "failed",
            "failed_at_is_after_queued_at",
        ),
    ] {
        let change =
            format!("update pgflow.{table} set {column} = {earlier} where status = '{status}'");
        assert_eq!(refused_by(&db.pool, &change).await, constraint, "{change}");
    }
}
