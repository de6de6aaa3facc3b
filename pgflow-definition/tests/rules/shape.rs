//! The JSON that startup sends.

use pgflow_definition::{
    Condition, ElementFailure, FlowDefinition, FlowOptions, SkipMode, StepDefinition, StepOptions,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{any_flow, flow, map, plain_flow, step};

#[test]
fn a_complete_definition_has_this_shape() {
    let steps = [
        step("parse", &[]),
        map("inspect", &["parse"]),
        StepDefinition {
            options: StepOptions {
                max_attempts: Some(5),
                base_delay: None,
                max_delay: Some(20),
                give_up_after: None,
                timeout: Some(30),
                start_delay: Some(0),
            },
            condition: Condition {
                required: Some(r#"{"parse": {"plan": "premium"}}"#),
                forbidden: Some(r#"{"inspect": [null]}"#),
            },
            when_unmet: SkipMode::SkipCascade,
            when_exhausted: SkipMode::Skip,
            on_element_failure: ElementFailure::Fail,
            runs_on: None,
            needs_flow_input: true,
            ..step("report", &["parse", "inspect"])
        },
    ];
    let options = FlowOptions {
        max_attempts: Some(3),
        base_delay: Some(5),
        max_delay: None,
        give_up_after: Some(40),
        timeout: Some(60),
    };
    assert_eq!(
        FlowDefinition {
            options,
            ..flow("audit", &steps)
        }
        .shape(),
        Ok(json!({
            "steps": [
                {
                    "slug": "parse",
                    "stepType": "single",
                    "dependencies": [],
                    "whenUnmet": "skip",
                    "whenExhausted": "fail",
                    "requiredInputPattern": { "defined": false },
                    "forbiddenInputPattern": { "defined": false },
                },
                {
                    "slug": "inspect",
                    "stepType": "map",
                    "dependencies": ["parse"],
                    "whenUnmet": "skip",
                    "whenExhausted": "fail",
                    "requiredInputPattern": { "defined": false },
                    "forbiddenInputPattern": { "defined": false },
                },
                {
                    "slug": "report",
                    "stepType": "single",
                    "dependencies": ["inspect", "parse"],
                    "whenUnmet": "skip-cascade",
                    "whenExhausted": "skip",
                    "requiredInputPattern": {
                        "defined": true, "value": { "parse": { "plan": "premium" } },
                    },
                    "forbiddenInputPattern": { "defined": true, "value": { "inspect": [null] } },
                    "options": { "maxAttempts": 5, "maxDelay": 20, "timeout": 30, "startDelay": 0 },
                },
            ],
            "options": { "maxAttempts": 3, "baseDelay": 5, "giveUpAfter": 40, "timeout": 60 },
        }))
    );
}

#[test]
fn an_empty_flow_has_an_empty_shape() {
    assert_eq!(plain_flow("audit", &[]).shape(), Ok(json!({ "steps": [] })));
}

#[test]
fn the_order_of_dependencies_and_the_spelling_of_patterns_make_no_difference() {
    let shape = |depends_on, pattern| {
        let condition = Condition {
            required: Some(pattern),
            forbidden: None,
        };
        let last = StepDefinition {
            condition,
            ..step("c", depends_on)
        };
        flow("audit", &[step("a", &[]), step("b", &[]), last])
            .shape()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        shape(&["a", "b"], r#"{"a":1,"b":{"x":1,"y":2}}"#),
        shape(&["b", "a"], r#"{ "b": {"y": 2, "x": 1}, "a": 1 }"#)
    );
}

#[test]
fn what_is_not_part_of_the_shape_does_not_show() {
    let plain = [step("a", &[])];
    let other = [StepDefinition {
        runs_on: None,
        needs_flow_input: true,
        ..plain[0]
    }];
    assert_eq!(
        flow("audit", &plain).shape(),
        plain_flow("other", &other).shape()
    );
}

#[test]
fn what_a_failed_element_is_shows_where_it_is_not_the_default() {
    let failing = [map("a", &[])];
    let tolerant = [StepDefinition {
        on_element_failure: ElementFailure::Null,
        ..failing[0]
    }];
    let step =
        |steps: &[StepDefinition<'_>]| flow("audit", steps).shape().unwrap()["steps"][0].clone();
    let mut expected = step(&failing);
    assert_eq!(expected.get("onElementFailure"), None);
    expected["onElementFailure"] = json!("null");
    assert_eq!(step(&tolerant), expected);
}

#[test]
fn an_invalid_definition_has_no_shape_but_all_its_problems() {
    let condition = Condition {
        required: Some("not json"),
        forbidden: Some("[]"),
    };
    let steps = [StepDefinition {
        condition,
        ..step("a", &["b"])
    }];
    let flow = flow("audit", &steps);
    assert_eq!(flow.shape(), Err(flow.problems()));
    assert_eq!(flow.problems().len(), 3);
}

proptest! {
    #[test]
    fn there_is_a_shape_exactly_when_there_is_no_problem(owned in any_flow()) {
        owned.with(|flow| {
            match flow.shape() {
                Ok(shape) => {
                    let steps = shape["steps"].as_array().map(Vec::len);
                    prop_assert_eq!(steps, Some(flow.steps.len()));
                }
                Err(problems) => {
                    prop_assert!(!problems.is_empty());
                    prop_assert_eq!(problems, flow.problems());
                }
            }
            Ok(())
        })?;
    }
}
