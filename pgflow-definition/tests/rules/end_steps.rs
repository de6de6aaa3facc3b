//! Steps that run when the run has ended.

use pgflow_definition::{Condition, Part, RunsOn, SkipMode, StepDefinition, StepKind};

use crate::support::{flow, map, only_problem, outline, plain_flow, step};

fn on(runs_on: RunsOn, base: StepDefinition<'_>) -> StepDefinition<'_> {
    StepDefinition {
        runs_on: Some(runs_on),
        ..base
    }
}

#[test]
fn one_of_each_is_no_problem_wherever_it_stands() {
    let steps = [
        on(RunsOn::Failure, step("alarm", &[])),
        step("work", &[]),
        on(RunsOn::End, step("tidy", &[])),
    ];
    assert_eq!(flow("audit", &steps).problems(), []);
    assert_eq!(flow("audit", &steps).route_map().unwrap().len(), 3);
}

#[test]
fn an_end_step_stands_alone_and_each_part_that_does_not_is_a_problem() {
    let steps = [
        step("work", &[]),
        on(
            RunsOn::Failure,
            StepDefinition {
                condition: Condition {
                    required: Some("{}"),
                    forbidden: Some("{}"),
                },
                when_unmet: SkipMode::Fail,
                when_exhausted: SkipMode::Skip,
                ..step("alarm", &["work", "nowhere"])
            },
        ),
        on(
            RunsOn::End,
            StepDefinition {
                condition: Condition {
                    required: Some("{}"),
                    forbidden: None,
                },
                ..map("tidy", &[])
            },
        ),
    ];
    let alarm = |part| (Some(1), part, "end_step_with_part");
    let tidy = |part| (Some(2), part, "end_step_with_part");
    assert_eq!(
        outline(&flow("audit", &steps)),
        [
            alarm(Part::Dependencies),
            alarm(Part::Required),
            alarm(Part::Forbidden),
            alarm(Part::WhenUnmet),
            alarm(Part::WhenExhausted),
            tidy(Part::MapSource),
            tidy(Part::Required),
        ],
        "and nothing that follows from them"
    );
    let steps = [step("work", &[]), on(RunsOn::End, step("tidy", &["work"]))];
    assert_eq!(
        only_problem(&flow("audit", &steps)).to_string(),
        "step `tidy` runs when the run has ended (`on = end`), so it can have no `depends_on`; it \
         gets the outputs of all completed steps from its parameter `end`; remove `depends_on`, or \
         `on`"
    );
}

#[test]
fn a_second_one_of_a_kind_is_a_problem() {
    let steps = [
        on(RunsOn::End, step("tidy", &[])),
        on(RunsOn::Failure, step("alarm", &[])),
        on(RunsOn::End, step("report", &[])),
    ];
    let flow = flow("audit", &steps);
    let problem = only_problem(&flow);
    assert_eq!((problem.step(), problem.part), (Some(2), Part::RunsOn));
    assert_eq!(
        problem.to_string(),
        "step `report` and step `tidy` both run `on = end`; a flow has one such step at most; do \
         both in one step"
    );
}

#[test]
fn nothing_depends_on_an_end_step_or_maps_over_it() {
    let steps = [
        on(RunsOn::Failure, step("alarm", &[])),
        step("work", &["alarm"]),
        map("each", &["alarm"]),
    ];
    let flow = flow("audit", &steps);
    assert_eq!(
        outline(&flow),
        [
            (Some(1), Part::Dependency(0), "end_step_as_dependency"),
            (Some(2), Part::MapSource, "end_step_as_dependency"),
        ]
    );
    let texts: Vec<String> = flow.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "step `work` depends on `alarm`, which runs when the run has ended (`on = failure`); a \
             step of the run was expected; name one, or remove the dependency",
            "step `each` maps over `alarm`, which runs when the run has ended (`on = failure`); a \
             step of the run was expected; name one, or remove the dependency",
        ]
    );
}

#[test]
fn they_are_drawn_behind_the_end_of_the_run() {
    let steps = [
        step("work", &[]),
        on(RunsOn::Failure, step("alarm", &[])),
        on(RunsOn::End, step("tidy", &[])),
    ];
    assert_eq!(
        plain_flow("audit", &steps).to_mermaid(),
        r#"graph LR
    s_work["work"]
    s_alarm["alarm"]
    s_tidy["tidy"]
    run_end(("end of the run"))
    run_end -. "on failure" .-> s_alarm
    run_end -.-> s_tidy
"#
    );
}

#[cfg(feature = "shape")]
#[test]
fn the_shape_names_the_end_and_is_silent_about_steps_of_the_run() {
    let steps = [
        step("work", &[]),
        on(RunsOn::Failure, step("alarm", &[])),
        on(RunsOn::End, step("tidy", &[])),
    ];
    let shape = flow("audit", &steps).shape().unwrap();
    let on: Vec<Option<&str>> = (shape["steps"].as_array().unwrap().iter())
        .map(|step| step.get("runsOn").map(|on| on.as_str().unwrap()))
        .collect();
    assert_eq!(on, [None, Some("failure"), Some("end")]);
    assert_eq!(steps[1].kind, StepKind::Single);
}
