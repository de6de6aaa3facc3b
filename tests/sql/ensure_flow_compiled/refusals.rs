//! Shapes that can not be a flow: an error of class PF, and nothing left behind.

use serde_json::{Value, json};

use super::{assert_nothing_defined, ensure};
use crate::support::TestDb;
use crate::support::flows::{Step, shape, step};
use crate::support::rows::raised;

async fn assert_refused(cases: Vec<(Value, &str)>) {
    let db = TestDb::new().await;
    for (shape, message) in cases {
        assert_eq!(
            raised(ensure(&db.pool, "orders", &shape).await),
            format!("PF004: {message}"),
            "{shape}"
        );
    }
    assert_nothing_defined(&db.pool).await;
}

/// The shape of one step, with one part replaced, or removed by `None`.
fn with_part(part: &str, value: Option<Value>) -> Value {
    let mut shape = shape(&[step("a")]);
    let step = shape["steps"][0].as_object_mut().expect("a step");
    match value {
        Some(value) => step.insert(part.to_owned(), value),
        None => step.remove(part),
    };
    shape
}

#[tokio::test]
async fn a_shape_has_a_list_of_steps() {
    let message = "flow \"orders\": the shape is not an object with an array \"steps\"";
    let shapes = [
        json!(null),
        json!([]),
        json!("x"),
        json!({}),
        json!({"steps": {}}),
    ];
    assert_refused(shapes.map(|shape| (shape, message)).to_vec()).await;
}

#[tokio::test]
async fn a_step_has_every_part_in_its_type() {
    let message = "flow \"orders\": a step of the shape lacks a part or has one of a wrong type";
    let mut shapes = vec![json!({"steps": [1]}), json!({"steps": [null]})];
    for part in [
        "slug",
        "stepType",
        "dependencies",
        "whenUnmet",
        "whenExhausted",
        "requiredInputPattern",
        "forbiddenInputPattern",
    ] {
        shapes.push(with_part(part, None));
        shapes.push(with_part(part, Some(json!(5))));
        shapes.push(with_part(part, Some(json!(null))));
    }
    shapes.push(with_part("dependencies", Some(json!([1]))));
    assert_refused(shapes.into_iter().map(|shape| (shape, message)).collect()).await;
}

#[tokio::test]
async fn a_pattern_has_a_value_exactly_when_it_is_defined() {
    let message = "flow \"orders\": a step of the shape lacks a part or has one of a wrong type";
    let patterns = [
        json!({"defined": true}),
        json!({"defined": false, "value": {}}),
        json!({"value": {}}),
    ];
    let shapes = patterns.iter().flat_map(|pattern| {
        ["requiredInputPattern", "forbiddenInputPattern"]
            .map(|part| (with_part(part, Some(pattern.clone())), message))
    });
    assert_refused(shapes.collect()).await;
}

#[tokio::test]
async fn an_option_is_a_whole_number_that_fits() {
    let message = "flow \"orders\": an option of the shape is not a whole number up to 2147483647";
    let mut shapes = Vec::new();
    for value in [
        json!("5"),
        json!(1.5),
        json!(2_147_483_648_u32),
        json!(null),
        json!([]),
    ] {
        for option in ["maxAttempts", "baseDelay", "timeout", "startDelay"] {
            shapes.push(with_part("options", Some(json!({option: value.clone()}))));
        }
        let mut of_flow = shape(&[]);
        of_flow["options"] = json!({"timeout": value});
        shapes.push(of_flow);
    }
    shapes.push(with_part("options", Some(json!([]))));
    shapes.push(json!({"steps": [], "options": 5}));
    assert_refused(shapes.into_iter().map(|shape| (shape, message)).collect()).await;
}

#[tokio::test]
async fn an_option_that_is_not_known_is_named() {
    let mut of_flow = shape(&[]);
    of_flow["options"] = json!({"timeout": 5, "startDelay": 1});
    assert_refused(vec![
        (
            with_part("options", Some(json!({"maxAttempt": 5}))),
            "flow \"orders\": the shape has an unknown option \"maxAttempt\"",
        ),
        (
            with_part("options", Some(json!({"timeout": 5, "": 1}))),
            "flow \"orders\": the shape has an unknown option \"\"",
        ),
        // Only steps have it.
        (
            of_flow,
            "flow \"orders\": the shape has an unknown option \"startDelay\"",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_definition_obeys_the_rules_of_definitions() {
    let steps: Vec<(Vec<Step>, &str)> = vec![
        (
            vec![step("a"), step("a")],
            "flow \"orders\" has two steps \"a\"",
        ),
        (
            vec![step("a"), step("A")],
            "step \"A\" differs from step \"a\" only in case",
        ),
        (vec![step("a-b")], "step slug \"a-b\" is not valid"),
        (vec![step("a").deps(&["a"])], "step \"a\" depends on itself"),
        (
            vec![step("a").deps(&["b"]), step("b")],
            "step \"a\" depends on steps that flow \"orders\" does not have: b",
        ),
        (
            vec![step("a"), step("b"), step("c").deps(&["a", "b"]).map()],
            "map step \"c\" depends on 2 steps (a, b); a map runs over the list of one",
        ),
        (
            vec![step("a").map().forbidden(json!({}))],
            "map step \"a\" runs over the flow's input, which is a list; a condition is an object, so it could never hold",
        ),
        (
            vec![step("a").timeout(0)],
            "step a: timeout is 0 seconds; it must be at least 1",
        ),
    ];
    assert_refused(
        steps
            .iter()
            .map(|(steps, message)| (shape(steps), *message))
            .collect(),
    )
    .await;
}

#[tokio::test]
async fn slugs_of_steps_are_complained_about_before_queue_names() {
    let db = TestDb::new().await;
    let long = "f".repeat(48);
    assert_eq!(
        raised(ensure(&db.pool, &long, &shape(&[step("a-b")])).await),
        "PF004: step slug \"a-b\" is not valid"
    );
    assert_eq!(
        raised(ensure(&db.pool, &long, &shape(&[step("a"), step("A")])).await),
        "PF004: step \"A\" differs from step \"a\" only in case"
    );
    assert_eq!(
        raised(ensure(&db.pool, &long, &shape(&[step("a")])).await),
        format!("PF010: flow \"{long}\": queue name \"{long}\" has 48 characters; the limit is 47")
    );
    assert_nothing_defined(&db.pool).await;
}
