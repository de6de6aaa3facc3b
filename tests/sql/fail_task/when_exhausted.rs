//! The effect of `when_exhausted` on a task without attempts: the run fails, the step is skipped,
//! or with it all its dependents. How skips of all kinds spread is in the module `skips` beside
//! this one.

use serde_json::json;

use crate::support::events::Events;
use crate::support::flows::{claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, step_state, task};
use crate::support::runs::{
    Failure, claim_all, database_with, everything, fail_for_good, of_step, outline, task_statuses,
    try_fail,
};

#[tokio::test]
async fn the_mode_decides_between_run_step_and_all_that_follows() {
    for (mode, expected, told, left) in [
        (
            "fail",
            "run failed, a failed, b created, c created, d created",
            "step:failed a, run:failed",
            4,
        ),
        (
            "skip",
            "run started, a skipped: handler_failed, b started, c created, d created",
            "step:skipped a, step:started b",
            3,
        ),
        (
            "skip-cascade",
            "run completed, a skipped: handler_failed, b skipped: dependency_skipped, c skipped: dependency_skipped, \
             d skipped: dependency_skipped",
            "step:skipped a, step:skipped b, step:skipped c, step:skipped d, run:completed",
            0,
        ),
    ] {
        let (db, worker) = database_with(&[
            step("a").when_exhausted(mode).max_attempts(1),
            step("b").deps(&["a"]),
            step("c").deps(&["b"]),
            step("d").deps(&["b", "c"]),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!({})).await;
        let claimed = claim_one(&db.pool, worker).await;
        let mut events = Events::at_level(&db.pool, "all").await;
        assert_eq!(fail(&db.pool, &claimed, "no luck").await, "failed");
        assert_eq!(outline(&db.pool, run_id).await, expected);
        assert_eq!(events.types(&db.pool).await, told);

        let error = Some("no luck".to_owned());
        assert_eq!(task(&db.pool, run_id, "a").await.error_message, error);
        assert_eq!(step_state(&db.pool, run_id, "a").await.error_message, error);
        let run = run(&db.pool, run_id).await;
        assert_eq!(run.remaining_steps, left);
        assert_eq!(run.error_message, error.filter(|_| mode == "fail"));
        assert_eq!(archived(&db.pool, "f").await, [claimed.message_id]);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_run_whose_only_step_is_skipped_completes() {
    for mode in ["skip", "skip-cascade"] {
        let (db, worker) = database_with(&[step("a").when_exhausted(mode)]).await;
        let run_id = start(&db.pool, "f", json!({})).await;
        fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
        let run = run(&db.pool, run_id).await;
        assert_eq!(run.status, "completed");
        assert_eq!(
            (run.remaining_steps, run.output, run.error_message),
            (0, None, None)
        );
        assert_eq!(messages(&db.pool, "f").await, []);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn every_dependent_of_a_skipped_step_waits_for_one_less_and_starts_if_that_was_the_last() {
    let (db, worker) = database_with(&[
        step("top").when_exhausted("skip"),
        step("left").deps(&["top"]),
        step("right").deps(&["top"]),
        step("other").start_delay(60),
        step("mixed").deps(&["top", "other"]),
        step("bottom").deps(&["left", "right"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
    for (slug, status, deps) in [
        ("left", "started", 0),
        ("right", "started", 0),
        ("mixed", "created", 1),
        ("bottom", "created", 2),
    ] {
        let state = step_state(&db.pool, run_id, slug).await;
        assert_eq!(
            (state.status.as_str(), state.remaining_deps),
            (status, deps),
            "{slug}"
        );
    }
    let claimed = claim_all(&db.pool, worker).await;
    for slug in ["left", "right"] {
        assert_eq!(of_step(&claimed, slug).input, json!({}));
        complete(&db.pool, of_step(&claimed, slug), json!(slug)).await;
    }
    assert_eq!(
        claim_one(&db.pool, worker).await.input,
        json!({"left": "left", "right": "right"})
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_over_a_skipped_step_completes_over_nothing_and_with_it_the_run() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip"),
        step("m").map().deps(&["a"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
    let map = step_state(&db.pool, run_id, "m").await;
    assert_eq!(
        (map.status.as_str(), map.initial_tasks, map.output),
        ("completed", Some(0), Some(json!([])))
    );
    let run = run(&db.pool, run_id).await;
    assert_eq!(
        (run.status.as_str(), run.output),
        ("completed", Some(json!({"m": []})))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_follows_a_map_over_a_skipped_step_starts_in_the_same_call() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip"),
        step("m").map().deps(&["a"]),
        step("m2").map().deps(&["m"]),
        step("after").deps(&["m2"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a skipped: handler_failed, m completed, m2 completed, after started"
    );
    assert_eq!(task_statuses(&db.pool, run_id, "after").await, "queued");
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({"m2": []}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_condition_that_fails_behind_a_skip_still_archives_the_culprits_message_and_returns_its_row()
 {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip").max_attempts(1),
        step("strict")
            .deps(&["a"])
            .required(json!({"a": {}}))
            .when_unmet("fail"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    let rows = try_fail(&db.pool, &claimed, Failure::default()).await;
    assert_eq!(rows.expect("no exception"), ["failed"]);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, a skipped: handler_failed, strict failed"
    );
    assert_eq!(archived(&db.pool, "f").await, [claimed.message_id]);
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(task_statuses(&db.pool, run_id, "strict").await, "");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_skipped_map_archives_the_messages_of_all_its_elements_and_no_others() {
    for mode in ["skip", "skip-cascade"] {
        let (db, worker) =
            database_with(&[step("m").map().when_exhausted(mode), step("other")]).await;
        let run_id = start(&db.pool, "f", json!([1, 2, 3, 4])).await;
        let all: Vec<i64> = messages(&db.pool, "f").await.iter().map(|m| m.id).collect();
        let claimed = claim(&db.pool, worker, 2).await;
        assert_eq!(claimed[1].step_slug, "m");
        fail_for_good(&db.pool, &claimed[1], "no").await;
        assert_eq!(
            task_statuses(&db.pool, run_id, "m").await,
            "skipped, failed, skipped, skipped"
        );
        assert_eq!(archived(&db.pool, "f").await, all[..4]);
        assert_eq!(messages(&db.pool, "f").await[0].id, all[4]);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_failure_that_is_reported_again_after_the_skip_changes_and_tells_nothing() {
    for mode in ["skip", "skip-cascade"] {
        let (db, worker) = database_with(&[
            step("m").map().when_exhausted(mode),
            step("other"),
            step("join").deps(&["m", "other"]),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!([1, 2])).await;
        let claimed = claim(&db.pool, worker, 2).await;
        let mut events = Events::at_level(&db.pool, "all").await;
        fail_for_good(&db.pool, &claimed[0], "no").await;
        let told = events.types(&db.pool).await;
        assert_eq!(told.matches("step:skipped m").count(), 1, "{told}");

        let before = everything(&db.pool, "f").await;
        for task in &claimed {
            for retryable in [true, false] {
                let failure = Failure {
                    retryable,
                    ..Failure::default()
                };
                try_fail(&db.pool, task, failure).await.expect("it is late");
                fail(&db.pool, task, "late").await;
            }
        }
        assert_eq!(everything(&db.pool, "f").await, before);
        assert_eq!(events.types(&db.pool).await, "");
        let left = if mode == "skip" { 2 } else { 1 };
        assert_eq!(run(&db.pool, run_id).await.remaining_steps, left);
        assert_invariants(&db.pool).await;
    }
}
