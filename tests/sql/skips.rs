//! Skips: how they spread, what dependents see of them, and what exhausted attempts do under each
//! mode.

use serde_json::{Value, json};

use crate::support::flows::{Step, claim, claim_one, complete, drain, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, run, step_state, task};
use crate::support::runs::{
    claim_all, database_with, everything, fail_for_good, of_step, outline, task_statuses,
};

/// A condition that no input here meets.
fn never() -> Value {
    json!({"never": true})
}

#[tokio::test]
async fn a_skipped_dependency_is_absent_from_the_input() {
    let (db, worker) = database_with(&[
        step("a").required(never()),
        step("b"),
        step("join").deps(&["a", "b"]),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, Value::Null).await;
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({"b": null}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn with_all_dependencies_skipped_the_input_is_an_empty_object() {
    let (db, worker) = database_with(&[
        step("a").required(never()),
        step("b").required(never()),
        step("join").deps(&["a", "b"]),
    ])
    .await;
    start(&db.pool, "f", json!({"x": 1})).await;
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_forbidden_pattern_tells_a_skipped_dependency() {
    let (db, worker) = database_with(&[
        step("main").required(json!({"main": true})),
        step("fallback")
            .deps(&["main"])
            .forbidden(json!({"main": {}})),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, main skipped: condition_unmet, fallback started"
    );
    let run_id = start(&db.pool, "f", json!({"main": true})).await;
    drain(&db.pool, worker, |_| json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, main completed, fallback skipped: condition_unmet"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_chain_of_conditional_skips_is_resolved_in_one_call() {
    let slugs: Vec<String> = (0..60).map(|n| format!("s{n}")).collect();
    let mut steps = vec![step("s0").required(never())];
    for pair in slugs.windows(2) {
        let previous: &str = &pair[0];
        steps.push(
            step(&pair[1])
                .deps(&[previous])
                .required(json!({previous: true})),
        );
    }
    let (db, _) = database_with(&steps).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let run = run(&db.pool, run_id).await;
    assert_eq!((run.status.as_str(), run.output), ("completed", None));
    assert_eq!(
        step_state(&db.pool, run_id, "s59")
            .await
            .skip_reason
            .as_deref(),
        Some("condition_unmet")
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_join_waits_for_what_was_not_skipped() {
    let (db, worker) = database_with(&[
        step("a").required(never()),
        step("b").required(never()),
        step("c"),
        step("join").deps(&["a", "b", "c"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let join = step_state(&db.pool, run_id, "join").await;
    assert_eq!((join.status.as_str(), join.remaining_deps), ("created", 1));
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(3)).await;
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({"c": 3}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_skipped_source_is_an_empty_list_to_a_map() {
    let (db, worker) = database_with(&[
        step("source").required(never()),
        step("m").map().deps(&["source"]),
        step("m2").map().deps(&["m"]),
        step("after").deps(&["m2"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, source skipped: condition_unmet, m completed, m2 completed, after started"
    );
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({"m2": []}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_cascade_skips_a_diamond_once_and_leaves_what_does_not_depend_on_it() {
    let (db, worker) = database_with(&[
        step("top").required(never()).when_unmet("skip-cascade"),
        step("left").deps(&["top"]),
        step("right").deps(&["top"]),
        step("bottom").deps(&["left", "right"]),
        step("other"),
        step("mixed").deps(&["bottom", "other"]),
        step("apart").deps(&["other"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, top skipped: condition_unmet, left skipped: dependency_skipped, \
         right skipped: dependency_skipped, bottom skipped: dependency_skipped, other started, \
         mixed skipped: dependency_skipped, apart created"
    );
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 2);
    assert_invariants(&db.pool).await;
    drain(&db.pool, worker, |task| json!(task.step_slug)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"apart": "apart"}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_cascade_through_many_layers_visits_each_step_once() {
    // Each step of a layer depends on the whole layer before: 3^30 paths.
    let slug = |layer: usize, place: usize| format!("s{layer}x{place}");
    let mut steps: Vec<Step> = vec![step("s0x0").required(never()).when_unmet("skip-cascade")];
    steps.extend((1..3).map(|place| step(&slug(0, place)).start_delay(3600)));
    for layer in 1..30 {
        let deps: Vec<String> = (0..3).map(|place| slug(layer - 1, place)).collect();
        let deps: Vec<&str> = deps.iter().map(String::as_str).collect();
        steps.extend((0..3).map(|place| step(&slug(layer, place)).deps(&deps)));
    }
    let (db, _) = database_with(&steps).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn cascades_that_meet_skip_each_step_once() {
    let (db, _) = database_with(&[
        step("a").required(never()).when_unmet("skip-cascade"),
        step("b").required(never()).when_unmet("skip-cascade"),
        step("c").required(never()),
        step("join").deps(&["a", "b", "c"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a skipped: condition_unmet, b skipped: condition_unmet, \
         c skipped: condition_unmet, join skipped: dependency_skipped"
    );
    assert_eq!(step_state(&db.pool, run_id, "join").await.remaining_deps, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_exhausted_step_that_skips_keeps_its_error_and_lets_dependents_run() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip").max_attempts(2),
        step("b").deps(&["a"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for expected in ["queued", "failed"] {
        let claimed = claim_one(&db.pool, worker).await;
        assert_eq!(fail(&db.pool, &claimed, "no luck").await, expected);
    }
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a skipped: handler_failed, b started"
    );
    let state = step_state(&db.pool, run_id, "a").await;
    assert_eq!(state.error_message.as_deref(), Some("no luck"));
    assert_eq!((state.remaining_tasks, state.output), (None, None));
    assert_eq!(
        task(&db.pool, run_id, "a").await.error_message.as_deref(),
        Some("no luck")
    );
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({}));
    assert_eq!(messages(&db.pool, "f").await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_exhausted_step_may_skip_all_that_depends_on_it() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip-cascade"),
        step("b").deps(&["a"]),
        step("c").map().deps(&["b"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a skipped: handler_failed, b skipped: dependency_skipped, c skipped: dependency_skipped"
    );
    let run = run(&db.pool, run_id).await;
    assert_eq!((run.output, run.error_message), (None, None));
    for step in ["b", "c"] {
        assert_eq!(step_state(&db.pool, run_id, step).await.error_message, None);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_exhausted_element_that_skips_its_map_takes_the_other_elements_with_it() {
    let (db, worker) = database_with(&[
        step("m").map().when_exhausted("skip").max_attempts(1),
        step("over_m").map().deps(&["m"]),
        step("after").deps(&["over_m"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3, 4])).await;
    let claimed = claim(&db.pool, worker, 3).await;
    complete(&db.pool, &claimed[0], json!("done")).await;
    assert_eq!(fail(&db.pool, &claimed[1], "no").await, "failed");
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "completed, failed, skipped, skipped"
    );
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, m skipped: handler_failed, over_m completed, after started"
    );
    assert_eq!(messages(&db.pool, "f").await.len(), 1, "that of `after`");

    let before = everything(&db.pool, "f").await;
    assert_eq!(complete(&db.pool, &claimed[2], json!(1)).await, "skipped");
    assert_eq!(fail(&db.pool, &claimed[2], "late").await, "skipped");
    assert_eq!(fail(&db.pool, &claimed[1], "again").await, "failed");
    assert_eq!(
        everything(&db.pool, "f").await,
        before,
        "late reports change nothing"
    );
    assert_eq!(
        claim_one(&db.pool, worker).await.input,
        json!({"over_m": []})
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn conditions_behind_an_exhausted_step_are_evaluated_before_anything_starts() {
    for (mode, expected) in [
        (
            "skip",
            "run completed, a skipped: handler_failed, guarded skipped: condition_unmet",
        ),
        (
            "fail",
            "run failed, a skipped: handler_failed, guarded failed",
        ),
    ] {
        let (db, worker) = database_with(&[
            step("a").when_exhausted("skip"),
            step("guarded")
                .deps(&["a"])
                .required(json!({"a": {}}))
                .when_unmet(mode),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!({})).await;
        let claimed = claim_one(&db.pool, worker).await;
        assert_eq!(fail_for_good(&db.pool, &claimed, "no").await, "failed");
        assert_eq!(outline(&db.pool, run_id).await, expected);
        assert_eq!(task_statuses(&db.pool, run_id, "guarded").await, "");
        assert_eq!(messages(&db.pool, "f").await, []);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_join_behind_an_exhausted_step_waits_for_the_others() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip"),
        step("b"),
        step("join").deps(&["a", "b"]),
        step("only_a").deps(&["a"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "a"), "no").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a skipped: handler_failed, b started, join created, only_a started"
    );
    complete(&db.pool, of_step(&claimed, "b"), json!("b")).await;
    let claimed = claim_all(&db.pool, worker).await;
    assert_eq!(of_step(&claimed, "join").input, json!({"b": "b"}));
    for task in &claimed {
        complete(&db.pool, task, json!(1)).await;
    }
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_cascade_stops_a_join_whose_other_dependency_still_runs() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip-cascade"),
        step("b"),
        step("join").deps(&["a", "b"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "a"), "no").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a skipped: handler_failed, b started, join skipped: dependency_skipped"
    );
    assert_invariants(&db.pool).await;
    complete(&db.pool, of_step(&claimed, "b"), json!(1)).await;
    let run = run(&db.pool, run_id).await;
    assert_eq!(
        (run.status.as_str(), run.output),
        ("completed", None),
        "`b` is no leaf"
    );
    assert_invariants(&db.pool).await;
}
