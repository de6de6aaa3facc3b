//! `requeue_stalled_tasks`: tasks whose worker died. `faults` has what must not stop it, `claims`
//! where it looks.

mod claims;
mod faults;

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::flows::{claim, claim_one, complete, define, drain, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, step_state, task};
use crate::support::runs::{
    age, claim_all, database_with, everything, fail_for_good, of_step, outline, requeue,
    task_statuses,
};

/// Claims the next task and lets it stall.
async fn stall(pool: &PgPool, worker: Uuid, run_id: Uuid, step: &str) {
    let claimed = claim(pool, worker, 100).await;
    assert!(claimed.iter().any(|t| t.step_slug == step));
    age(pool, run_id, step, 3600).await;
}

#[tokio::test]
async fn a_task_is_stalled_half_a_minute_after_its_timeout_and_not_before() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    assert_eq!(claimed.timeout, 60);
    age(&db.pool, run_id, "a", 80).await;
    let before = everything(&db.pool, "f").await;
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(everything(&db.pool, "f").await, before);
    age(&db.pool, run_id, "a", 10).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_steps_own_timeout_goes_before_the_flows() {
    let (db, worker) = database_with(&[
        step("short").timeout(5),
        step("flows"),
        step("long").timeout(600),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_all(&db.pool, worker).await;
    let mut statuses = Vec::new();
    for seconds in [30, 10, 55, 500, 100] {
        for step in ["short", "flows", "long"] {
            if task_statuses(&db.pool, run_id, step).await == "started" {
                age(&db.pool, run_id, step, seconds).await;
            }
        }
        statuses.push(requeue(&db.pool).await);
    }
    assert_eq!(statuses, [0, 1, 1, 0, 1], "at 40, 95 and 695 seconds");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_requeued_task_is_as_good_as_new_but_for_its_attempt() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let first = claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);

    let row: (String, i32, i32, bool, bool, bool) = sqlx::query_as(
        "select status, attempts_count, requeued_count, last_requeued_at is not null, started_at is null, last_worker_id is null
         from pgflow.step_tasks",
    )
    .fetch_one(&db.pool)
    .await
    .expect("the task can be read");
    assert_eq!(row, ("queued".to_owned(), 1, 1, true, true, true));
    assert_eq!(requeue(&db.pool).await, 0, "it is not stalled twice");

    let second = claim_one(&db.pool, worker).await;
    assert_eq!((second.attempt, second.message_id), (2, first.message_id));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn reports_of_the_stalled_attempt_come_too_late() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let first = claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    requeue(&db.pool).await;
    let queued = everything(&db.pool, "f").await;
    assert_eq!(complete(&db.pool, &first, json!("late")).await, "queued");
    assert_eq!(fail(&db.pool, &first, "late").await, "queued");
    assert_eq!(everything(&db.pool, "f").await, queued);

    let second = claim_one(&db.pool, worker).await;
    let started = everything(&db.pool, "f").await;
    assert_eq!(complete(&db.pool, &first, json!("late")).await, "started");
    assert_eq!(fail(&db.pool, &first, "late").await, "started");
    assert_eq!(everything(&db.pool, "f").await, started);

    complete(&db.pool, &second, json!("in time")).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"a": "in time"}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_report_before_recovery_is_not_too_late() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let slow = claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    assert_eq!(complete(&db.pool, &slow, json!(1)).await, "completed");
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a completed, b started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_stalls_at_its_last_attempt_is_exhausted_and_its_mode_decides() {
    for (mode, expected) in [
        ("fail", "run failed, a failed, b created, c created"),
        (
            "skip",
            "run started, a skipped: handler_failed, b started, c created",
        ),
        (
            "skip-cascade",
            "run completed, a skipped: handler_failed, b skipped: dependency_skipped, c skipped: dependency_skipped",
        ),
    ] {
        let (db, worker) = database_with(&[
            step("a").when_exhausted(mode).max_attempts(4),
            step("b").deps(&["a"]),
            step("c").deps(&["b"]),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!({})).await;
        for _ in 0..3 {
            stall(&db.pool, worker, run_id, "a").await;
            assert_eq!(requeue(&db.pool).await, 1);
            assert_invariants(&db.pool).await;
        }
        stall(&db.pool, worker, run_id, "a").await;
        assert_eq!(requeue(&db.pool).await, 0);

        assert_eq!(outline(&db.pool, run_id).await, expected);
        let message = "stalled: attempt 4 was not reported within its timeout and 30 s more, and no other attempt follows";
        let task = task(&db.pool, run_id, "a").await;
        assert_eq!((task.status.as_str(), task.attempts_count), ("failed", 4));
        assert_eq!(task.error_message.as_deref(), Some(message));
        assert_eq!(
            step_state(&db.pool, run_id, "a")
                .await
                .error_message
                .as_deref(),
            Some(message)
        );
        let stamped: bool = sqlx::query_scalar(
            "select permanently_stalled_at is not null from pgflow.step_tasks where step_slug = 'a'",
        )
        .fetch_one(&db.pool)
        .await
        .expect("the task can be read");
        assert!(stamped, "it says that it stalled for good");
        assert_eq!(archived(&db.pool, "f").await.len(), 1);
        assert_eq!(requeue(&db.pool).await, 0);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn ended_runs_and_steps_are_left_alone() {
    let (db, worker) =
        database_with(&[step("m").map().when_exhausted("skip"), step("killer")]).await;
    let failed = start(&db.pool, "f", json!([1, 2, 3])).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, &claimed[1], "the map is skipped").await;
    fail_for_good(&db.pool, of_step(&claimed, "killer"), "the run fails").await;
    let completed = start(&db.pool, "f", json!([1])).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    for (run_id, step) in [(failed, "m"), (failed, "killer"), (completed, "m")] {
        age(&db.pool, run_id, step, 3600).await;
    }
    let before = everything(&db.pool, "f").await;
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}

/// Rows that were changed manually: the task is active, and what it belongs to has ended.
#[tokio::test]
async fn a_started_task_whose_run_or_step_was_ended_by_hand_is_left_alone() {
    for ended in [
        "update pgflow.runs set status = 'failed', failed_at = now()",
        "update pgflow.step_states set status = 'failed', failed_at = clock_timestamp()",
    ] {
        let (db, worker) = database_with(&[step("a")]).await;
        let run_id = start(&db.pool, "f", json!({})).await;
        claim_one(&db.pool, worker).await;
        age(&db.pool, run_id, "a", 3600).await;
        sqlx::query(ended).execute(&db.pool).await.expect("ended");
        let before = everything(&db.pool, "f").await;
        assert_eq!(requeue(&db.pool).await, 0);
        assert_eq!(everything(&db.pool, "f").await, before, "after {ended}");
    }
}

#[tokio::test]
async fn several_flows_with_timeouts_of_their_own_are_recovered_in_one_call() {
    let (db, of_f) = database_with(&[step("m").map()]).await;
    define(
        &db.pool,
        "g",
        &[step("a").timeout(600), step("b").timeout(1)],
    )
    .await;
    let of_g = worker(&db.pool, "g").await;
    let run_f = start(&db.pool, "f", json!([1, 2, 3])).await;
    let run_g = start(&db.pool, "g", json!({})).await;
    claim(&db.pool, of_f, 2).await;
    claim_all(&db.pool, of_g).await;
    age(&db.pool, run_f, "m", 100).await;
    age(&db.pool, run_g, "a", 100).await;
    age(&db.pool, run_g, "b", 100).await;
    assert_eq!(requeue(&db.pool).await, 3);
    assert_eq!(
        task_statuses(&db.pool, run_f, "m").await,
        "queued, queued, queued"
    );
    assert_eq!(task_statuses(&db.pool, run_g, "a").await, "started");
    assert_eq!(task_statuses(&db.pool, run_g, "b").await, "queued");
    let visible = messages(&db.pool, "f").await;
    assert!(visible.iter().all(|m| m.hidden_for == 0), "{visible:?}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn of_several_exhausted_tasks_of_a_run_one_is_to_blame() {
    let (db, worker) = database_with(&[step("a"), step("b"), step("c")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for stalls in 1..=3 {
        let claimed = claim_all(&db.pool, worker).await;
        for task in &claimed {
            // `c` stalls less often than the others: it is still to be requeued when they are
            // exhausted.
            if task.step_slug != "c" || stalls > 1 {
                age(&db.pool, run_id, &task.step_slug, 3600).await;
            }
        }
        requeue(&db.pool).await;
    }
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, a failed, b started, c started"
    );
    for step in ["b", "c"] {
        assert_eq!(task_statuses(&db.pool, run_id, step).await, "cancelled");
    }
    assert_invariants(&db.pool).await;
}
