use pgflow_definition::mermaid::{Step, render};
use pgflow_definition::{Condition, ElementFailure, SkipMode, StepDefinition, StepKind};

use crate::support::{flow, map, plain_flow, step};

fn conditional<'a>(
    required: Option<&'a str>,
    forbidden: Option<&'a str>,
    base: StepDefinition<'a>,
) -> StepDefinition<'a> {
    StepDefinition {
        condition: Condition {
            required,
            forbidden,
        },
        ..base
    }
}

/// One of everything that a diagram shows.
fn everything() -> String {
    let steps = [
        step("parse", &[]),
        StepDefinition {
            when_exhausted: SkipMode::SkipCascade,
            ..map("inspect", &["parse"])
        },
        StepDefinition {
            when_unmet: SkipMode::SkipCascade,
            when_exhausted: SkipMode::Skip,
            ..conditional(
                Some(r#"{"parse":[{"kind":"git"}]}"#),
                Some(r#"{"parse":[]}"#),
                step("sources", &["parse"]),
            )
        },
        conditional(Some(r#"{"plan":"premium"}"#), None, step("notify", &[])),
        step("report", &["sources", "notify", "inspect", "parse"]),
    ];
    plain_flow("crate_audit", &steps).to_mermaid()
}

#[test]
fn steps_edges_conditions_and_modes_are_drawn() {
    assert_eq!(
        everything(),
        r#"graph LR
    s_parse["parse"]
    s_inspect[["inspect<br/>one task per element of parse<br/>when exhausted: skip-cascade"]]
    s_sources["sources<br/>if {#34;parse#34;#58;[{#34;kind#34;#58;#34;git#34;}]}<br/>if not {#34;parse#34;#58;[]}<br/>when unmet: skip-cascade<br/>when exhausted: skip"]
    s_notify["notify<br/>if {#34;plan#34;#58;#34;premium#34;}"]
    s_report["report"]
    s_parse --> s_inspect
    s_parse --> s_sources
    s_parse --> s_report
    s_inspect -. "cascades" .-> s_report
    s_sources -. "optional or cascades" .-> s_report
    s_notify -. "optional" .-> s_report
"#
    );
}

#[test]
fn a_map_over_the_input_says_so() {
    assert_eq!(
        flow("greetings", &[map("greet", &[])]).to_mermaid(),
        "graph LR\n    s_greet[[\"greet<br/>one task per element of the input\"]]\n"
    );
}

#[test]
fn a_map_that_does_without_failed_elements_says_so() {
    let steps = [StepDefinition {
        on_element_failure: ElementFailure::Null,
        ..map("greet", &[])
    }];
    assert_eq!(
        flow("greetings", &steps).to_mermaid(),
        "graph LR\n    s_greet[[\"greet<br/>one task per element of the input<br/>null where an element fails\"]]\n"
    );
}

#[test]
fn words_of_mermaid_are_no_ids() {
    let steps = [step("end", &[]), step("graph", &["end"])];
    assert_eq!(
        flow("words", &steps).to_mermaid(),
        "graph LR\n    s_end[\"end\"]\n    s_graph[\"graph\"]\n    s_end --> s_graph\n"
    );
}

#[test]
fn a_mode_without_its_condition_is_not_shown() {
    let steps = [StepDefinition {
        when_unmet: SkipMode::Fail,
        ..step("only", &[])
    }];
    assert_eq!(
        flow("modes", &steps).to_mermaid(),
        "graph LR\n    s_only[\"only\"]\n"
    );
}

/// Text that would end the label, start a directive, a code, a tag, a line or Markdown, or lose a
/// semicolon.
const HOSTILE: &str = r##"{"style":"#quot; %%{init: {}}%% <b>&amp; \n `x`; end]]--> classDef:é"}"##;

#[test]
fn text_means_nothing_to_mermaid() {
    let steps = [conditional(Some(HOSTILE), None, step("only", &[]))];
    assert_eq!(
        flow("hostile", &steps).to_mermaid(),
        "graph LR\n    s_only[\"only<br/>if {#34;style#34;#58;#34;#35;quot#59; #37;#37;{init#58; {}}#37;#37; #60;b#62;#38;amp#59; #92;n #96;x#96;#59; end]]--#62; classDef#58;é#34;}\"]\n"
    );
}

#[test]
fn a_long_pattern_is_cut_between_characters() {
    let pattern = format!("{{\"a\":\"{}\"}}", "é".repeat(100));
    let steps = [conditional(Some(&pattern), None, step("only", &[]))];
    let text = flow("long", &steps).to_mermaid();
    let expected = format!("if {{#34;a#34;#58;#34;{}…\"]\n", "é".repeat(74));
    assert!(text.ends_with(&expected), "{text}");
}

#[test]
fn the_order_of_dependencies_is_that_of_the_steps() {
    let of = |depends_on| Step {
        slug: "c",
        kind: StepKind::Single,
        depends_on,
        condition: Condition::default(),
        when_unmet: SkipMode::Skip,
        when_exhausted: SkipMode::Fail,
        on_element_failure: ElementFailure::Fail,
        runs_on: None,
    };
    let (a, b) = (step("a", &[]), step("b", &[]));
    let draw = |last: Step<'_>| render(&[Step::from(&a), Step::from(&b), last]);
    assert_eq!(draw(of(vec!["a", "b"])), draw(of(vec!["b", "a"])));
}
