//! Short ways to write definitions, and random ones.

use pgflow_definition::{
    Condition, ElementFailure, FlowDefinition, FlowOptions, Part, Problem, QueueMode, SkipMode,
    StepDefinition, StepKind, StepOptions,
};
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) const VECTORS: &str = include_str!("../../vectors/naming.json");

pub(crate) fn step<'a>(slug: &'a str, depends_on: &'a [&'a str]) -> StepDefinition<'a> {
    StepDefinition {
        slug,
        kind: StepKind::Single,
        depends_on,
        options: StepOptions::default(),
        condition: Condition::default(),
        when_unmet: SkipMode::Skip,
        when_exhausted: SkipMode::Fail,
        on_element_failure: ElementFailure::Fail,
        runs_on: None,
        needs_flow_input: false,
    }
}

pub(crate) fn map<'a>(slug: &'a str, depends_on: &'a [&'a str]) -> StepDefinition<'a> {
    StepDefinition {
        kind: StepKind::Map,
        ..step(slug, depends_on)
    }
}

/// A flow with step queues.
pub(crate) fn flow<'a>(slug: &'a str, steps: &'a [StepDefinition<'a>]) -> FlowDefinition<'a> {
    FlowDefinition {
        slug,
        queue_mode: QueueMode::Step,
        options: FlowOptions::default(),
        steps,
    }
}

pub(crate) fn plain_flow<'a>(slug: &'a str, steps: &'a [StepDefinition<'a>]) -> FlowDefinition<'a> {
    FlowDefinition {
        queue_mode: QueueMode::Flow,
        ..flow(slug, steps)
    }
}

/// The only problem of a flow.
pub(crate) fn only_problem(flow: &FlowDefinition<'_>) -> Problem {
    let problems = flow.problems();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.into_iter().next().unwrap()
}

/// Step, part and kind of each problem.
pub(crate) fn outline(flow: &FlowDefinition<'_>) -> Vec<(Option<usize>, Part, &'static str)> {
    flow.problems()
        .iter()
        .map(|problem| (problem.step(), problem.part, problem.kind.name()))
        .collect()
}

/// Slugs that are valid for steps, of all lengths.
pub(crate) fn valid_slug() -> impl Strategy<Value = String> {
    "[A-Za-z](_?[A-Za-z0-9]){0,50}".prop_filter("reserved", |slug| {
        !["run", "input", "item", "ctx", "state"].contains(&slug.as_str())
    })
}

/// Graphs of up to ten steps that may have cycles.
pub(crate) fn graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (0..10_usize).prop_flat_map(|steps| vec(vec(0..steps.max(1), 0..3), steps))
}

/// Graphs of one step to `most` without cycles, in topological order.
pub(crate) fn ordered_graph(most: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
    vec(vec(any::<prop::sample::Index>(), 0..3), 1..=most).prop_map(|picks| {
        let earlier = |(step, picks): (usize, Vec<prop::sample::Index>)| {
            picks
                .iter()
                .filter(|_| step > 0)
                .map(|pick| pick.index(step.max(1)))
                .collect()
        };
        picks.into_iter().enumerate().map(earlier).collect()
    })
}

pub(crate) fn skip_mode() -> impl Strategy<Value = SkipMode> {
    prop_oneof![
        Just(SkipMode::Fail),
        Just(SkipMode::Skip),
        Just(SkipMode::SkipCascade)
    ]
}

/// A definition that owns its parts, so that it can be generated.
#[derive(Debug, Clone)]
pub(crate) struct OwnedFlow {
    pub(crate) slug: String,
    pub(crate) queue_mode: QueueMode,
    pub(crate) steps: Vec<OwnedStep>,
}

#[derive(Debug, Clone)]
pub(crate) struct OwnedStep {
    pub(crate) slug: String,
    pub(crate) kind: StepKind,
    pub(crate) depends_on: Vec<String>,
    pub(crate) options: StepOptions,
    pub(crate) required: Option<String>,
    pub(crate) forbidden: Option<String>,
    pub(crate) when_unmet: SkipMode,
    pub(crate) when_exhausted: SkipMode,
}

impl OwnedFlow {
    /// Lends the definition.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&FlowDefinition<'_>) -> T) -> T {
        let depends_on: Vec<Vec<&str>> = self
            .steps
            .iter()
            .map(|step| step.depends_on.iter().map(String::as_str).collect())
            .collect();
        let steps: Vec<_> = self
            .steps
            .iter()
            .zip(&depends_on)
            .map(|(step, depends_on)| StepDefinition {
                slug: &step.slug,
                kind: step.kind,
                depends_on,
                options: step.options,
                condition: Condition {
                    required: step.required.as_deref(),
                    forbidden: step.forbidden.as_deref(),
                },
                when_unmet: step.when_unmet,
                when_exhausted: step.when_exhausted,
                on_element_failure: ElementFailure::Fail,
                runs_on: None,
                needs_flow_input: false,
            })
            .collect();
        let flow = flow(&self.slug, &steps);
        use_it(&FlowDefinition {
            queue_mode: self.queue_mode,
            ..flow
        })
    }
}

/// Definitions of which some are valid and most are not, in every way at once.
pub(crate) fn any_flow() -> impl Strategy<Value = OwnedFlow> {
    // Few slugs, so that dependencies often meet a step.
    let slug = || prop_oneof![8 => "[a-cA-C]", 1 => valid_slug(), 1 => any::<String>()];
    let pattern = || {
        let text = prop_oneof![
            Just("{}".to_owned()),
            Just(r#"{"a": {"b": [1, null]}}"#.to_owned()),
            r#"[{}\[\]":,0a\\]{0,8}"#,
            any::<String>(),
        ];
        prop::option::weighted(0.3, text)
    };
    let option = || prop::option::weighted(0.1, any::<u32>());
    let options = (option(), option(), option(), option(), option(), option());
    let options = options.prop_map(
        |(max_attempts, base_delay, max_delay, give_up_after, timeout, start_delay)| StepOptions {
            max_attempts,
            base_delay,
            max_delay,
            give_up_after,
            timeout,
            start_delay,
        },
    );
    let kind = prop_oneof![3 => Just(StepKind::Single), 1 => Just(StepKind::Map)];
    let step = (
        (slug(), kind, vec(slug(), 0..3), options),
        (pattern(), pattern(), skip_mode(), skip_mode()),
    )
        .prop_map(
            |((slug, kind, depends_on, options), (required, forbidden, unmet, exhausted))| {
                OwnedStep {
                    slug,
                    kind,
                    depends_on,
                    options,
                    required,
                    forbidden,
                    when_unmet: unmet,
                    when_exhausted: exhausted,
                }
            },
        );
    let queue_mode = prop_oneof![Just(QueueMode::Flow), Just(QueueMode::Step)];
    (
        prop_oneof![valid_slug(), slug()],
        queue_mode,
        vec(step, 0..5),
    )
        .prop_map(|(slug, queue_mode, steps)| OwnedFlow {
            slug,
            queue_mode,
            steps,
        })
}
