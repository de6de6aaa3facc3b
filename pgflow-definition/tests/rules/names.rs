//! Duplicate slugs and the names of queues.

use std::collections::HashSet;

use pgflow_definition::queue::{MAX_QUEUE_NAME, MAX_STEP_QUEUED_FLOW_SLUG};
use pgflow_definition::{Part, ProblemKind, QueueMode};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{VECTORS, flow, only_problem, outline, plain_flow, step, valid_slug};

#[test]
fn all_vectors_route_or_fail_as_they_say() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors["maximum"], MAX_QUEUE_NAME);
    for vector in vectors["routes"].as_array().unwrap() {
        let slugs: Vec<&str> = vector["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(as_str)
            .collect();
        let steps: Vec<_> = slugs.iter().map(|slug| step(slug, &[])).collect();
        let flow = flow(as_str(&vector["flow"]), &steps);
        let found = match flow.route_map() {
            Ok(routes) => {
                assert!(
                    routes.iter().map(|route| &route.step).eq(&slugs),
                    "{vector}"
                );
                json!({ "queues": routes.iter().map(|route| &route.queue).collect::<Vec<_>>() })
            }
            Err(_) => failure(&only_problem(&flow)),
        };
        assert_eq!(found, vector["expect"], "{}", vector["name"]);
    }
}

fn as_str(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn failure(problem: &pgflow_definition::Problem) -> Value {
    let error = problem.kind.name();
    match &problem.kind {
        ProblemKind::StepQueueNameTooLong { readable, fallback } => {
            let pgflow_definition::Subject::Step { index, slug } = &problem.subject else {
                panic!("{problem:?}")
            };
            json!({
                "error": error, "step": slug, "index": index,
                "readable_len": readable.len(), "fallback_len": fallback.len(),
            })
        }
        ProblemKind::FlowQueueNameTooLong {
            step,
            index,
            readable,
            fallback,
        } => json!({
            "error": error, "step": step, "index": index,
            "readable_len": readable.len(), "fallback_len": fallback.len(),
        }),
        _ => json!({ "error": error }),
    }
}

#[test]
fn a_plain_flow_sends_every_step_to_its_only_queue() {
    let steps = [step("parse", &[]), step("report", &["parse"])];
    let flow = plain_flow("CrateAudit", &steps);
    assert_eq!(flow.default_queue(), "crateaudit");
    let queues = flow
        .route_map()
        .unwrap()
        .into_iter()
        .map(|route| (route.step, route.queue));
    assert!(queues.eq(["parse", "report"].map(|step| (step.into(), "crateaudit".into()))));
}

#[test]
fn a_plain_flow_may_be_empty() {
    assert_eq!(plain_flow("audit", &[]).route_map(), Ok(vec![]));
}

#[test]
fn step_queues_need_a_step() {
    let problem = only_problem(&flow("audit", &[]));
    assert_eq!(problem.part, Part::QueueMode);
    assert_eq!(
        problem.to_string(),
        "flow `audit` has a queue for each step, but no step; at least one was expected; add a \
         step, or remove `with_step_queues`"
    );
}

#[test]
fn the_slug_of_a_plain_flow_is_at_most_the_name_of_a_queue() {
    assert_eq!(plain_flow(&"f".repeat(47), &[]).problems(), []);
    let slug = "f".repeat(48);
    let problem = only_problem(&plain_flow(&slug, &[]));
    assert_eq!((problem.step(), problem.part), (None, Part::QueueName));
    assert_eq!(
        problem.to_string(),
        format!(
            "flow `{slug}` has a slug of 48 characters, which is also the name of its queue; a \
             queue name has at most 47; set another with `slug = \"..\"`"
        )
    );
}

#[test]
fn a_flow_too_long_for_step_queues_is_said_once_with_the_room_there_is() {
    let slug = "f".repeat(46);
    let steps = [step("a", &[]), step("b", &[])];
    let flow = flow(&slug, &steps);
    let problem = only_problem(&flow);
    assert_eq!((problem.step(), problem.part), (None, Part::QueueName));
    assert_eq!(
        problem.to_string(),
        format!(
            "flow `{slug}` can't have step queues: even the shortest name, `{slug}__0`, has 49 \
             characters; a queue name has at most 47, which leaves 44 for the slug of the flow; \
             set another with `slug = \"..\"`, or remove `with_step_queues`, so that the flow has \
             a single queue"
        )
    );
}

#[test]
fn a_step_without_a_name_that_fits_is_told_both_names_and_two_ways_out() {
    let flow_slug = "f".repeat(MAX_STEP_QUEUED_FLOW_SLUG);
    let slugs: Vec<String> = (0..11).map(|index| format!("step{index}")).collect();
    let steps: Vec<_> = slugs.iter().map(|slug| step(slug, &[])).collect();
    let problem = only_problem(&flow(&flow_slug, &steps));
    assert_eq!((problem.step(), problem.part), (Some(10), Part::QueueName));
    assert_eq!(
        problem.to_string(),
        format!(
            "step `step10` can't have a queue: `{flow_slug}__step10` has 52 characters, and \
             `{flow_slug}__10` still has 48; a queue name has at most 47; shorten the slug of the \
             step or of the flow with `slug = \"..\"`, or remove `with_step_queues`, so that the \
             flow has a single queue"
        )
    );
}

#[test]
fn slugs_that_differ_in_case_only_are_duplicates() {
    let steps = [
        step("Parse", &[]),
        step("report", &[]),
        step("parse", &[]),
        step("PARSE", &[]),
    ];
    let flow = flow("audit", &steps);
    let expected = [2, 3].map(|index| (Some(index), Part::Slug, "duplicate_step_slug"));
    assert_eq!(outline(&flow), expected);
    assert_eq!(
        flow.problems()[0].to_string(),
        "step `parse` has the slug of step `Parse` at index 0; slugs must differ in more than \
         case, because queue names are lower case; set another with `slug = \"..\"`"
    );
}

#[test]
fn a_bad_slug_that_stands_twice_is_bad_and_not_a_duplicate() {
    let steps = [step("a_", &[]), step("A_", &[])];
    let expected = [0, 1].map(|index| (Some(index), Part::Slug, "invalid_slug"));
    assert_eq!(outline(&flow("audit", &steps)), expected);
}

#[test]
fn complaints_come_in_the_order_of_the_contract() {
    let long = "s".repeat(60);
    let steps = [
        step("a", &[]),
        step("b_", &["missing"]),
        step("A", &[]),
        step("c", &[]),
        step("d", &[]),
        step("e", &[]),
        step("g", &[]),
        step("h", &[]),
        step("i", &[]),
        step("j", &[]),
        step(&long, &[]),
    ];
    let flow_slug = "f".repeat(44);
    assert_eq!(
        outline(&flow(&flow_slug, &steps)),
        [
            (Some(1), Part::Slug, "invalid_slug"),
            (Some(2), Part::Slug, "duplicate_step_slug"),
            (Some(10), Part::QueueName, "step_queue_name_too_long"),
            (Some(1), Part::Dependency(0), "unknown_dependency"),
        ]
    );
}

#[test]
fn names_are_not_derived_from_a_bad_slug() {
    let long = "f".repeat(60);
    let steps = [step("a_", &[])];
    let expected = [(Some(0), Part::Slug, "invalid_slug")];
    assert_eq!(outline(&flow(&long, &steps)), expected);
    let slug = "f_".repeat(40);
    assert_eq!(
        outline(&flow(&slug, &[step("a", &[])])),
        [(None, Part::Slug, "invalid_slug")]
    );
    assert_eq!(
        outline(&plain_flow(&slug, &[])),
        [(None, Part::Slug, "invalid_slug")]
    );
}

#[test]
fn an_invalid_definition_has_no_routes_but_all_its_problems() {
    let steps = [step("a", &["b"]), step("c_", &[])];
    let flow = flow("audit", &steps);
    assert_eq!(flow.route_map(), Err(flow.problems()));
    assert_eq!(flow.problems().len(), 2);
}

proptest! {
    #[test]
    fn queue_names_fit_and_never_meet(
        flow_slug in valid_slug(),
        slugs in vec(valid_slug(), 1..20),
        queue_mode in prop_oneof![Just(QueueMode::Flow), Just(QueueMode::Step)],
    ) {
        let mut seen = HashSet::new();
        let steps: Vec<_> = slugs
            .iter()
            .filter(|slug| seen.insert(slug.to_ascii_lowercase()))
            .map(|slug| step(slug, &[]))
            .collect();
        let flow = pgflow_definition::FlowDefinition { queue_mode, ..flow(&flow_slug, &steps) };
        match flow.route_map() {
            Ok(routes) => {
                prop_assert_eq!(routes.len(), steps.len());
                for route in &routes {
                    prop_assert!((1..=MAX_QUEUE_NAME).contains(&route.queue.len()));
                    prop_assert_eq!(&route.queue, &route.queue.to_lowercase());
                }
                let names: HashSet<_> = routes.iter().map(|route| &route.queue).collect();
                let queues = if queue_mode == QueueMode::Step { steps.len() } else { 1 };
                prop_assert_eq!(names.len(), queues);
            }
            Err(problems) => {
                let longest = match queue_mode {
                    QueueMode::Flow => MAX_QUEUE_NAME,
                    // Two digits of an index are the most that there are here.
                    QueueMode::Step => MAX_STEP_QUEUED_FLOW_SLUG - 1,
                };
                prop_assert!(flow_slug.len() > longest);
                prop_assert!(problems.iter().all(|problem| problem.part == Part::QueueName));
            }
        }
    }
}
