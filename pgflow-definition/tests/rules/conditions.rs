//! The patterns that are allowed.

use pgflow_definition::{Condition, Part, StepDefinition};

use crate::support::{flow, only_problem, outline, step};

fn required<'a>(step: StepDefinition<'a>, pattern: &'a str) -> StepDefinition<'a> {
    StepDefinition {
        condition: Condition {
            required: Some(pattern),
            forbidden: None,
        },
        ..step
    }
}

#[test]
fn a_root_step_may_ask_for_any_key_of_the_input() {
    let steps = [required(
        step("notify", &[]),
        r#"{"plan": "premium", "limits": {"users": 5}}"#,
    )];
    assert_eq!(flow("audit", &steps).problems(), []);
}

#[test]
fn a_dependent_step_may_ask_for_its_dependencies_only() {
    let steps = [
        step("parse", &[]),
        step("inspect", &[]),
        required(
            step("report", &["parse", "inspect"]),
            r#"{"parse": {"plan": 1}, "plan": 1}"#,
        ),
    ];
    let problem = only_problem(&flow("audit", &steps));
    assert_eq!((problem.step(), problem.part), (Some(2), Part::Required));
    assert_eq!(
        problem.to_string(),
        "`if` of step `report` has the key `plan`, which is not a dependency, so it could never \
         match; the keys are `parse`, `inspect`; correct the key, or add the dependency"
    );
}

#[test]
fn a_key_that_is_a_bad_dependency_is_one_mistake() {
    let steps = [required(step("report", &["prase"]), r#"{"prase": {}}"#)];
    let expected = [(Some(0), Part::Dependency(0), "unknown_dependency")];
    assert_eq!(outline(&flow("audit", &steps)), expected);
}

#[test]
fn text_that_is_not_json_is_a_problem() {
    for text in [
        "",
        "{",
        "{plan: 1}",
        "{} {}",
        "{\"a\": 1e999}",
        "{\"a\": \"\\ud800\"}",
    ] {
        let steps = [required(step("notify", &[]), text)];
        let expected = [(Some(0), Part::Required, "condition_not_json")];
        assert_eq!(outline(&flow("audit", &steps)), expected, "{text:?}");
    }
    let steps = [required(step("notify", &[]), "{plan: 1}")];
    assert_eq!(
        only_problem(&flow("audit", &steps)).to_string(),
        "`if` of step `notify` is not JSON (key must be a string at line 1 column 2); a JSON \
         object was expected; write for example `{\"plan\": \"premium\"}`"
    );
}

#[test]
fn nesting_without_end_is_a_problem_and_no_crash() {
    let text = format!("{}{}", "{\"a\":".repeat(100_000), "[".repeat(100_000));
    let steps = [required(step("notify", &[]), &text)];
    let expected = [(Some(0), Part::Required, "condition_not_json")];
    assert_eq!(outline(&flow("audit", &steps)), expected);
}

#[test]
fn json_that_is_not_an_object_is_a_problem() {
    let found = [
        ("null", "null"),
        ("true", "a boolean"),
        ("1", "a number"),
        ("\"premium\"", "a string"),
        ("[{}]", "an array"),
    ];
    for (text, found) in found {
        let condition = Condition {
            required: None,
            forbidden: Some(text),
        };
        let steps = [StepDefinition {
            condition,
            ..step("notify", &[])
        }];
        assert_eq!(
            only_problem(&flow("audit", &steps)).to_string(),
            format!(
                "`if_not` of step `notify` is {found}; a JSON object was expected; write for \
                 example `{{\"plan\": \"premium\"}}`"
            )
        );
    }
}

#[test]
fn what_postgres_cannot_store_is_a_problem_at_any_depth() {
    for text in [r#"{"a": [{"b": "x\u0000"}]}"#, r#"{"a": {"\u0000": 1}}"#] {
        let steps = [required(step("notify", &[]), text)];
        assert_eq!(
            only_problem(&flow("audit", &steps)).to_string(),
            "`if` of step `notify` holds the character U+0000; JSON in Postgres has any character \
             but this; remove it"
        );
    }
}

#[test]
fn numbers_are_sent_as_they_are_written_or_not_at_all() {
    for text in [
        "-9223372036854775808",
        "18446744073709551615",
        "0.1",
        "-2.5e-3",
    ] {
        let pattern = format!("{{\"a\": {text}}}");
        let steps = [required(step("notify", &[]), &pattern)];
        assert_eq!(flow("audit", &steps).problems(), [], "{text}");
    }
    for text in ["-9223372036854775809", "1e300"] {
        let pattern = format!("{{\"a\": {text}}}");
        let steps = [required(step("notify", &[]), &pattern)];
        let expected = [(Some(0), Part::Required, "condition_inexact_number")];
        assert_eq!(outline(&flow("audit", &steps)), expected, "{text}");
    }
    let steps = [required(
        step("notify", &[]),
        r#"{"a": 18446744073709551617}"#,
    )];
    assert_eq!(
        only_problem(&flow("audit", &steps)).to_string(),
        "`if` of step `notify` holds a number that would be stored as 1.8446744073709552e+19; an \
         integer of at most 64 bits was expected; use a smaller number, or a string in the data \
         as well"
    );
}
