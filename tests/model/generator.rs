//! Random cases: a flow, the inputs of its runs, and actions. All are made of small numbers that
//! mean something whatever else is there, so a case may lose steps, runs and actions, and still be
//! one.

use proptest::bits::u16::sampled;
use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::actions::{Action, Among, AttemptOf, Item, Pick, Shape};
use super::flow::{Flow, Mode, Step};

pub(crate) const MAX_STEPS: usize = 12;

/// The few values that flows handle, and that conditions ask for.
pub(crate) const SCALARS: [&str; 6] = ["0", "1", "[]", "{}", "null", "[0]"];

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) flow: Flow,
    /// One for each run.
    pub(crate) inputs: Vec<Value>,
    pub(crate) actions: Vec<Action>,
}

pub(crate) fn scalar(number: usize) -> Value {
    let text = SCALARS[number % SCALARS.len()];
    serde_json::from_str(text).expect("a scalar is JSON")
}

/// One in six is empty.
pub(crate) fn array(number: usize) -> Value {
    (0..number % 6).map(|n| scalar(number / 6 + n)).collect()
}

/// The input of a run.
pub(crate) fn input_of(takes_array: bool, number: usize) -> Value {
    if takes_array {
        array(number)
    } else {
        json!({"input": scalar(number)})
    }
}

/// The requirement of a pattern: the number of a key, and of a value.
type Pattern = Option<(usize, usize)>;

#[derive(Debug, Clone)]
struct StepPlan {
    letter: u8,
    is_map: bool,
    /// Bit n: the step that stands n + 1 before it.
    deps: u16,
    /// Of a map: the step that stands so far before it; 0 is the flow's input.
    source: usize,
    required: Pattern,
    forbidden: Pattern,
    when_unmet: Mode,
    when_exhausted: Mode,
    is_tolerant: bool,
    options: [Option<i32>; 4],
}

fn mode(weights: [(u32, Mode); 3]) -> impl Strategy<Value = Mode> {
    let [first, second, third] = weights.map(|(weight, mode)| (weight, Just(mode)));
    prop_oneof![first.0 => first.1, second.0 => second.1, third.0 => third.1]
}

fn one_of(values: &'static [i32]) -> impl Strategy<Value = i32> {
    (0..values.len()).prop_map(|place| values[place])
}

fn step_plan() -> impl Strategy<Value = StepPlan> {
    let pattern = || option::weighted(0.2, (0usize..4, 0usize..SCALARS.len()));
    let options = (
        option::weighted(0.6, 1i32..=3),
        option::weighted(0.3, one_of(&[0, 700, 40_000])),
        option::weighted(0.3, one_of(&[1000, 2000])),
        option::weighted(0.05, Just(600)),
    );
    (
        (0u8..26, weighted(0.35), sampled(0..=4, 0..6), 0usize..6),
        (pattern(), pattern()),
        mode([(3, Mode::Skip), (1, Mode::SkipCascade), (1, Mode::Fail)]),
        (
            mode([(2, Mode::Fail), (3, Mode::Skip), (2, Mode::SkipCascade)]),
            weighted(0.4),
        ),
        options,
    )
        .prop_map(
            |(kind, patterns, when_unmet, (when_exhausted, is_tolerant), options)| {
                let (letter, is_map, deps, source) = kind;
                StepPlan {
                    letter,
                    is_map,
                    deps,
                    source,
                    required: patterns.0,
                    forbidden: patterns.1,
                    when_unmet,
                    when_exhausted,
                    is_tolerant,
                    options: [options.0, options.1, options.2, options.3],
                }
            },
        )
}

fn step_of(plan: &StepPlan, place: usize, earlier: &[Step]) -> Step {
    let deps: Vec<usize> = if plan.is_map {
        let distance = plan.source.min(place);
        let source = (distance > 0).then(|| place - distance);
        source.into_iter().collect()
    } else {
        let distances = (1..=place).rev();
        distances
            .filter(|distance| *distance <= 16 && plan.deps >> (distance - 1) & 1 == 1)
            .map(|distance| place - distance)
            .collect()
    };
    // A root map can have no condition. Now and then a pattern asks for what is no dependency.
    let pattern = |pattern: Pattern| {
        let (key, value) = pattern.filter(|_| !plan.is_map || !deps.is_empty())?;
        let key = match deps.get(key % (deps.len() + 1)).or(deps.first()) {
            Some(&dep) => earlier[dep].slug.as_str(),
            None => "input",
        };
        Some(json!({key: scalar(value)}))
    };
    let [max_attempts, base_delay, timeout, start_delay] = plan.options;
    Step {
        // The order of the slugs is not that of the definition.
        slug: format!("{}{place}", char::from(b'a' + plan.letter)),
        is_map: plan.is_map,
        required: pattern(plan.required),
        forbidden: pattern(plan.forbidden),
        deps,
        when_unmet: plan.when_unmet,
        when_exhausted: plan.when_exhausted,
        is_tolerant: plan.is_map && plan.is_tolerant,
        max_attempts,
        base_delay,
        timeout,
        start_delay,
    }
}

fn flow() -> impl Strategy<Value = Flow> {
    let options = (1i32..=3, one_of(&[0, 300]), one_of(&[1000, 2000]));
    (vec(step_plan(), 1..=MAX_STEPS), options, weighted(0.25)).prop_map(
        |(plans, (max_attempts, base_delay, timeout), own_queues)| {
            let mut steps = Vec::new();
            for (place, plan) in plans.iter().enumerate() {
                steps.push(step_of(plan, place, &steps));
            }
            Flow {
                steps,
                max_attempts,
                base_delay,
                timeout,
                own_queues,
            }
        },
    )
}

fn pick() -> impl Strategy<Value = Pick> {
    let among = prop_oneof![
        84 => Just(Among::Started),
        15 => Just(Among::All),
        1 => Just(Among::Unknown),
    ];
    (any::<u16>(), among).prop_map(|(number, among)| Pick {
        number: usize::from(number),
        among,
    })
}

fn attempt() -> impl Strategy<Value = AttemptOf> {
    prop_oneof![
        80 => Just(AttemptOf::Current),
        8 => Just(AttemptOf::Whichever),
        8 => Just(AttemptOf::Earlier),
        4 => Just(AttemptOf::Later),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    let shape =
        prop_oneof![94 => Just(Shape::Right), 4 => Just(Shape::Wrong), 2 => Just(Shape::Null)];
    (pick(), attempt(), 0usize..36, shape).prop_map(|(pick, attempt, output, shape)| Item {
        pick,
        attempt,
        output,
        shape,
    })
}

fn action() -> impl Strategy<Value = Action> {
    let number = || any::<u16>().prop_map(usize::from);
    prop_oneof![
        30 => (number(), 1usize..=8).prop_map(|(worker, max)| Action::Claim { worker, max }),
        26 => vec(item(), 1..=6).prop_map(Action::Complete),
        5 => item().prop_map(Action::CompleteOne),
        14 => (pick(), attempt(), weighted(0.8), option::weighted(0.2, one_of(&[0, 900, -1])))
            .prop_map(|(pick, attempt, retryable, retry_delay)| Action::Fail { pick, attempt, retryable, retry_delay }),
        7 => (pick(), attempt(), one_of(&[0, 0, 900, -1]), weighted(0.2))
            .prop_map(|(pick, attempt, delay, too_long)| Action::Postpone { pick, attempt, delay, too_long }),
        5 => (vec(number(), 1..=3), attempt(), weighted(0.15)).prop_map(|(tasks, attempt, by_another)| Action::Release { tasks, attempt, by_another }),
        4 => (vec(number(), 1..=3), weighted(0.7)).prop_map(|(tasks, until_stalled)| Action::Age { tasks, until_stalled }),
        3 => Just(Action::Recover),
        6 => (number(), 1usize..=4, weighted(0.6)).prop_map(|(task, times, is_death)| Action::Stall { task, times, is_death }),
        6 => (number(), weighted(0.25)).prop_map(|(seed, even_started)| Action::Show { seed, even_started }),
        1 => number().prop_map(|run| Action::StartAgain { run }),
        1 => Just(Action::StartRefused),
    ]
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let inputs = vec(0usize..36, 1..=7);
    (flow(), inputs, vec(action(), 0..=80)).prop_map(|(flow, inputs, actions)| {
        let input = |number| input_of(flow.has_root_map(), number);
        Case {
            inputs: inputs.into_iter().map(input).collect(),
            flow,
            actions,
        }
    })
}
