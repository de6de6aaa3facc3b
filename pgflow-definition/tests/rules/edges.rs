//! Dependencies of a definition.

use pgflow_definition::{CycleEdge, ElementFailure, Part, ProblemKind, StepDefinition};
use proptest::prelude::*;

use crate::support::{any_flow, flow, map, only_problem, outline, step};

#[test]
fn an_unknown_dependency_is_a_problem_of_its_entry() {
    let steps = [step("parse", &[]), step("report", &["parse", "prase"])];
    let problem = only_problem(&flow("audit", &steps));
    assert_eq!(
        (problem.step(), problem.part),
        (Some(1), Part::Dependency(1))
    );
    assert_eq!(
        problem.to_string(),
        "step `report` depends on `prase`, but the flow has no such step; the exact slug of \
         another step was expected; correct the name, or add the step"
    );
}

#[test]
fn a_dependency_of_another_case_is_unknown_but_recognised() {
    let steps = [step("parseLock", &[]), map("inspect", &["parselock"])];
    let problem = only_problem(&flow("audit", &steps));
    assert_eq!((problem.step(), problem.part), (Some(1), Part::MapSource));
    assert_eq!(
        problem.to_string(),
        "step `inspect` maps over `parselock`, but the flow has no such step; the exact slug of \
         another step was expected; write `parseLock`"
    );
}

#[test]
fn a_step_cannot_depend_on_itself() {
    let steps = [step("parse", &["parse"]), map("inspect", &["inspect"])];
    let flow = flow("audit", &steps);
    assert_eq!(
        outline(&flow),
        [
            (Some(0), Part::Dependency(0), "self_dependency"),
            (Some(1), Part::MapSource, "self_dependency"),
        ]
    );
    assert_eq!(
        flow.problems()[1].to_string(),
        "step `inspect` maps over itself, so it could never start; name another step, or remove \
         the dependency"
    );
}

#[test]
fn a_dependency_is_listed_once() {
    let steps = [step("parse", &[]), step("report", &["parse", "parse"])];
    let problem = only_problem(&flow("audit", &steps));
    assert_eq!(
        (problem.step(), problem.part),
        (Some(1), Part::Dependency(1))
    );
    assert_eq!(
        problem.to_string(),
        "step `report` lists `parse` twice; remove one of them"
    );
}

#[test]
fn a_map_has_one_source_at_most() {
    let steps = [
        step("a", &[]),
        step("b", &[]),
        map("c", &["a", "b"]),
        map("d", &["a", "a"]),
    ];
    let flow = flow("audit", &steps);
    assert_eq!(
        outline(&flow),
        [
            (Some(2), Part::Dependencies, "map_arity"),
            // One mistake, not two.
            (Some(3), Part::Dependency(1), "duplicate_dependency"),
        ]
    );
    assert_eq!(
        flow.problems()[0].to_string(),
        "step `c` is a map step with 2 dependencies; a map step has one at most, the step whose \
         list it maps over; keep that one, and gather other inputs in it"
    );
}

#[test]
fn a_cycle_prints_its_path_and_knows_each_mention() {
    let steps = [
        step("parse", &[]),
        step("fetch", &["parse", "report"]),
        step("inspect", &["fetch"]),
        step("report", &["inspect"]),
        step("notify", &["report"]),
    ];
    let problem = only_problem(&flow("audit", &steps));
    assert_eq!(
        (problem.step(), problem.part),
        (Some(1), Part::Dependency(1))
    );
    let edge = |step, slug: &str, dependency| CycleEdge {
        step,
        slug: slug.into(),
        dependency,
    };
    let edges = vec![
        edge(1, "fetch", 1),
        edge(3, "report", 0),
        edge(2, "inspect", 0),
    ];
    assert_eq!(problem.kind, ProblemKind::Cycle(edges));
    assert_eq!(
        problem.to_string(),
        "these steps wait for each other and could never start: `fetch` -> `report` -> `inspect` \
         -> `fetch`; remove one of these dependencies"
    );
}

#[test]
fn separate_cycles_are_separate_problems() {
    let steps = [
        step("a", &["b"]),
        step("b", &["a"]),
        step("c", &["d"]),
        map("d", &["c"]),
        step("e", &["f"]),
    ];
    assert_eq!(
        outline(&flow("audit", &steps)),
        [
            (Some(4), Part::Dependency(0), "unknown_dependency"),
            (Some(0), Part::Dependency(0), "cycle"),
            (Some(2), Part::Dependency(0), "cycle"),
        ]
    );
}

#[test]
fn steps_stand_after_their_dependencies() {
    let steps = [step("report", &["parse"]), step("parse", &[])];
    let problem = only_problem(&flow("audit", &steps));
    assert_eq!(
        (problem.step(), problem.part),
        (Some(0), Part::Dependencies)
    );
    assert_eq!(
        problem.to_string(),
        "step `report` stands before `parse`, which it depends on; each step was expected after \
         its dependencies; move it behind them"
    );
}

#[test]
fn a_condition_cannot_stand_on_a_map_over_the_input() {
    let condition = pgflow_definition::Condition {
        required: Some("{}"),
        forbidden: Some("{}"),
    };
    let steps = [
        StepDefinition {
            condition,
            ..map("inspect", &[])
        },
        StepDefinition {
            condition,
            ..map("rate", &["inspect"])
        },
        StepDefinition {
            condition,
            ..step("parse", &[])
        },
    ];
    let flow = flow("audit", &steps);
    assert_eq!(
        outline(&flow),
        [
            (Some(0), Part::Required, "condition_on_root_map"),
            (Some(0), Part::Forbidden, "condition_on_root_map"),
        ]
    );
    assert_eq!(
        flow.problems()[1].to_string(),
        "`if_not` of step `inspect` could never match: the step maps over the flow's input, and a \
         list contains no object; an input with keys was expected; move the condition to a step \
         that depends on this one"
    );
}

#[test]
fn steps_are_found_by_their_exact_slug() {
    let steps = [step("parse", &[]), step("report", &["parse"])];
    let flow = flow("audit", &steps);
    assert_eq!(flow.step_index("report"), Some(1));
    assert_eq!(flow.step_index("Report"), None);
}

proptest! {
    #[test]
    fn any_definition_is_judged_and_every_problem_explained(owned in any_flow()) {
        owned.with(|flow| {
            for problem in flow.problems() {
                let text = problem.to_string();
                // The fault, and the fix.
                prop_assert!(text.split("; ").count() >= 2, "{}", text);
                prop_assert!(problem.step().is_none_or(|index| index < flow.steps.len()));
            }
            prop_assert_eq!(flow.route_map().is_ok(), flow.problems().is_empty());
            Ok(())
        })?;
    }
}

#[test]
fn only_a_map_step_can_do_without_elements() {
    let tolerant = |step| StepDefinition {
        on_element_failure: ElementFailure::Null,
        ..step
    };
    let steps = [
        tolerant(map("fetch", &[])),
        tolerant(step("report", &["fetch"])),
    ];
    let definition = flow("audit", &steps);
    assert_eq!(
        outline(&definition),
        [(Some(1), Part::ElementFailure, "no_elements")]
    );
    assert_eq!(
        definition.problems()[0].to_string(),
        "`on_element_failure` is only for steps with `map`, and step `report` has none; remove it, \
         or write `map = ..`; to choose what follows when the step itself fails, use `when_exhausted`"
    );
}
