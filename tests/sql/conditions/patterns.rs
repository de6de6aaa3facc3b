//! Patterns: which inputs hold them, and that both kinds obey the same modes.

use serde_json::{Value, json};

use crate::support::flows::{Step, claim_one, complete, drain, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, run, step_state};
use crate::support::runs::{database_with, outline};

/// Expects a root step with a condition to run, or not, for each input.
async fn expect(condition: impl Fn(Step) -> Step, cases: &[(Value, bool)]) {
    let (db, worker) = database_with(&[condition(step("root"))]).await;
    for (input, runs) in cases {
        let run_id = start(&db.pool, "f", input.clone()).await;
        let expected = if *runs {
            "run started, root started"
        } else {
            "run completed, root skipped: condition_unmet"
        };
        assert_eq!(outline(&db.pool, run_id).await, expected, "input {input}");
        let executed = drain(&db.pool, worker, |_| Value::Null).await;
        assert_eq!(executed, usize::from(*runs), "input {input}");
        assert_eq!(run(&db.pool, run_id).await.status, "completed");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_runs_if_its_input_contains_the_pattern() {
    expect(
        |step| step.required(json!({"plan": {"name": "pro"}, "tags": ["b", "a"]})),
        &[
            (
                json!({"plan": {"name": "pro", "seats": 3}, "tags": ["a", "b", "c"]}),
                true,
            ),
            (
                json!({"plan": {"name": "pro"}, "tags": ["a", "b", "b"], "more": 1}),
                true,
            ),
            (json!({"plan": {"name": "free"}, "tags": ["a", "b"]}), false),
            (json!({"plan": {"name": "pro"}, "tags": ["a"]}), false),
            (json!({"plan": {"name": "pro"}}), false),
            (json!({"plan": "pro", "tags": ["a", "b"]}), false),
            (
                json!([{"plan": {"name": "pro"}, "tags": ["a", "b"]}]),
                false,
            ),
            (json!("pro"), false),
            (Value::Null, false),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_step_runs_if_its_input_does_not_contain_the_forbidden_pattern() {
    expect(
        |step| step.forbidden(json!({"plan": "free"})),
        &[
            (json!({"plan": "free", "more": 1}), false),
            (json!({"plan": "pro"}), true),
            (json!({}), true),
            (json!([]), true),
            (Value::Null, true),
        ],
    )
    .await;
}

#[tokio::test]
async fn with_both_patterns_both_must_hold() {
    expect(
        |step| {
            step.required(json!({"plan": "pro"}))
                .forbidden(json!({"suspended": true}))
        },
        &[
            (json!({"plan": "pro"}), true),
            (json!({"plan": "pro", "suspended": false}), true),
            (json!({"plan": "pro", "suspended": true}), false),
            (json!({"plan": "free"}), false),
            (json!({"plan": "free", "suspended": true}), false),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_empty_pattern_holds_for_every_object() {
    expect(
        |step| step.required(json!({})),
        &[
            (json!({}), true),
            (json!({"a": 1}), true),
            (json!(1), false),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_step_without_a_condition_runs_whatever_its_input() {
    let inputs = [
        json!({"plan": "pro"}),
        json!({}),
        json!([]),
        json!("pro"),
        json!(0),
        json!(false),
        Value::Null,
    ];
    expect(|step| step, &inputs.map(|input| (input, true))).await;
}

#[tokio::test]
async fn a_forbidden_pattern_that_is_found_obeys_each_mode() {
    for (mode, expected, remaining_steps) in [
        (
            "skip",
            "run started, a skipped: condition_unmet, b started, c created, other started",
            3,
        ),
        (
            "skip-cascade",
            "run started, a skipped: condition_unmet, b skipped: dependency_skipped, \
             c skipped: dependency_skipped, other started",
            1,
        ),
        (
            "fail",
            "run failed, a failed, b created, c created, other created",
            4,
        ),
    ] {
        let (db, _) = database_with(&[
            step("a")
                .forbidden(json!({"plan": "free"}))
                .when_unmet(mode),
            step("b").deps(&["a"]),
            step("c").deps(&["b"]),
            step("other"),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!({"plan": "free", "more": 1})).await;
        assert_eq!(outline(&db.pool, run_id).await, expected);
        let run = run(&db.pool, run_id).await;
        assert_eq!(run.remaining_steps, remaining_steps);
        let error = (mode == "fail").then(|| "Condition not met".to_owned());
        assert_eq!(run.error_message, error);
        assert_eq!(step_state(&db.pool, run_id, "a").await.error_message, error);
        let started = expected.matches(" started").count() - usize::from(mode != "fail");
        assert_eq!(messages(&db.pool, "f").await.len(), started);
        assert_invariants(&db.pool).await;

        let met = start(&db.pool, "f", json!({"plan": "pro"})).await;
        assert_eq!(
            outline(&db.pool, met).await,
            "run started, a started, b created, c created, other started"
        );
        assert_invariants(&db.pool).await;
    }
}

/// People write `{dep: {}}` to ask whether a dependency ran. It asks for an object.
#[tokio::test]
async fn an_empty_object_for_a_dependency_is_held_by_objects_only() {
    let (db, worker) = database_with(&[
        step("dep"),
        step("if_object")
            .deps(&["dep"])
            .required(json!({"dep": {}})),
        step("if_not_object")
            .deps(&["dep"])
            .forbidden(json!({"dep": {}})),
    ])
    .await;
    for (output, is_object) in [
        (json!({}), true),
        (json!({"a": 1}), true),
        (json!([]), false),
        (json!([{}]), false),
        (json!([1, 2]), false),
        (json!("text"), false),
        (json!(1), false),
        (json!(true), false),
        (Value::Null, false),
    ] {
        let run_id = start(&db.pool, "f", json!({})).await;
        complete(&db.pool, &claim_one(&db.pool, worker).await, output.clone()).await;
        let expected = if is_object {
            "run started, dep completed, if_object started, if_not_object skipped: condition_unmet"
        } else {
            "run started, dep completed, if_object skipped: condition_unmet, if_not_object started"
        };
        assert_eq!(outline(&db.pool, run_id).await, expected, "output {output}");
        assert_eq!(drain(&db.pool, worker, |_| Value::Null).await, 1);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_that_its_condition_skipped_has_neither_task_nor_message() {
    let (db, _) = database_with(&[
        step("required").required(json!({"never": 1})),
        step("forbidden").forbidden(json!({})),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, required skipped: condition_unmet, forbidden skipped: condition_unmet"
    );
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 0);
    assert_eq!(messages(&db.pool, "f").await, []);
    for step in ["required", "forbidden"] {
        let state = step_state(&db.pool, run_id, step).await;
        assert_eq!((state.output, state.remaining_tasks), (None, None));
    }
    assert_invariants(&db.pool).await;
}
