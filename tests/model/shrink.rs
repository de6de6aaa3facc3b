//! Smaller cases than a given one, most daring first. Taking any of them that still fails, again
//! and again, ends with a case of which nothing can be left out.

use super::actions::{Action, Among, AttemptOf, Item, Pick, Shape};
use super::flow::{Flow, Mode, Step};
use super::generator::{Case, input_of};

/// All cases that are a little smaller.
pub(crate) fn smaller(case: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for actions in without_parts(&case.actions) {
        cases.push(Case {
            actions,
            ..case.clone()
        });
    }
    for inputs in without_parts(&case.inputs) {
        if !inputs.is_empty() {
            cases.push(Case {
                inputs,
                ..case.clone()
            });
        }
    }
    for flow in smaller_flows(&case.flow) {
        let mut case = Case {
            flow,
            ..case.clone()
        };
        let takes_array = case.flow.has_root_map();
        for input in &mut case.inputs {
            if input.is_array() != takes_array {
                *input = input_of(takes_array, 1);
            }
        }
        cases.push(case);
    }
    for (place, action) in case.actions.iter().enumerate() {
        for simpler in simpler_actions(action) {
            let mut case = case.clone();
            case.actions[place] = simpler;
            cases.push(case);
        }
    }
    cases
}

/// Without everything, without each half, each quarter, .. each single one.
fn without_parts<T: Clone>(all: &[T]) -> Vec<Vec<T>> {
    let mut lists = Vec::new();
    let mut length = all.len();
    while length > 0 {
        for start in (0..all.len()).step_by(length) {
            let end = (start + length).min(all.len());
            lists.push([&all[..start], &all[end..]].concat());
        }
        length = if length == 1 { 0 } else { length.div_ceil(2) };
    }
    lists
}

fn smaller_flows(flow: &Flow) -> Vec<Flow> {
    let mut flows = Vec::new();
    if flow.steps.len() > 1 {
        flows.extend((0..flow.steps.len()).rev().map(|step| without(flow, step)));
    }
    for (place, step) in flow.steps.iter().enumerate() {
        for simpler in simpler_steps(step) {
            let mut flow = flow.clone();
            flow.steps[place] = simpler;
            flows.push(flow);
        }
    }
    let plain = [
        Flow {
            own_queues: false,
            ..flow.clone()
        },
        Flow {
            max_attempts: 1,
            ..flow.clone()
        },
        Flow {
            base_delay: 0,
            ..flow.clone()
        },
        Flow {
            timeout: 1000,
            ..flow.clone()
        },
    ];
    flows.extend(plain.into_iter().filter(|plain| plain != flow));
    flows
}

/// Without a step; a map over it becomes a single step.
fn without(flow: &Flow, gone: usize) -> Flow {
    let mut smaller = flow.clone();
    smaller.steps.remove(gone);
    for step in &mut smaller.steps {
        let deps = step.deps.iter().filter(|&&dep| dep != gone);
        let deps: Vec<usize> = deps.map(|&dep| dep - usize::from(dep > gone)).collect();
        step.is_map &= deps.len() == step.deps.len();
        step.is_tolerant &= step.is_map;
        step.deps = deps;
    }
    smaller
}

fn simpler_steps(step: &Step) -> Vec<Step> {
    let mut steps = Vec::new();
    for dep in &step.deps {
        let mut simpler = step.clone();
        simpler.deps.retain(|other| other != dep);
        simpler.is_map = false;
        simpler.is_tolerant = false;
        steps.push(simpler);
    }
    let changes: [fn(&mut Step); 10] = [
        |step| {
            step.is_map &= step.deps.is_empty();
            step.is_tolerant &= step.is_map;
        },
        |step| step.is_tolerant = false,
        |step| step.required = None,
        |step| step.forbidden = None,
        |step| step.when_unmet = Mode::Skip,
        |step| step.when_exhausted = Mode::Fail,
        |step| step.max_attempts = None,
        |step| step.base_delay = None,
        |step| step.timeout = None,
        |step| step.start_delay = None,
    ];
    for change in changes {
        let mut simpler = step.clone();
        change(&mut simpler);
        steps.push(simpler);
    }
    steps.retain(|simpler| simpler != step);
    steps
}

fn simpler_actions(action: &Action) -> Vec<Action> {
    let mut actions = match action {
        Action::Claim { worker, max } => {
            let (worker, max) = (*worker, *max);
            vec![
                Action::Claim { worker: 0, max },
                Action::Claim { worker, max: 1 },
            ]
        }
        Action::Complete(items) => {
            let fewer = without_parts(items).into_iter();
            let fewer = fewer.filter(|items| !items.is_empty());
            let mut actions: Vec<Action> = fewer.map(Action::Complete).collect();
            for (place, item) in items.iter().enumerate() {
                for simpler in simpler_items(*item) {
                    let mut items = items.clone();
                    items[place] = simpler;
                    actions.push(Action::Complete(items));
                }
            }
            actions
        }
        Action::CompleteOne(item) => {
            let items = simpler_items(*item).into_iter();
            items.map(Action::CompleteOne).collect()
        }
        Action::Fail {
            pick,
            attempt,
            retryable,
            retry_delay,
        } => {
            let with = |pick, attempt, retryable, retry_delay| Action::Fail {
                pick,
                attempt,
                retryable,
                retry_delay,
            };
            let mut first = *pick;
            first.number = 0;
            vec![
                with(first, *attempt, *retryable, *retry_delay),
                with(*pick, AttemptOf::Current, *retryable, *retry_delay),
                with(*pick, *attempt, true, *retry_delay),
                with(*pick, *attempt, *retryable, None),
            ]
        }
        Action::Postpone {
            pick,
            attempt,
            delay,
            too_long,
        } => simpler_postponements(*pick, *attempt, *delay, *too_long),
        Action::Release {
            tasks,
            attempt,
            by_another,
        } => {
            let by_another = *by_another;
            let lists = without_parts(tasks).into_iter();
            let lists = lists.filter(|tasks| !tasks.is_empty());
            let lists = lists.chain([vec![0; tasks.len()]]);
            let with = |tasks, attempt| Action::Release {
                tasks,
                attempt,
                by_another,
            };
            let current = with(tasks.clone(), AttemptOf::Current);
            lists
                .map(|tasks| with(tasks, *attempt))
                .chain([current])
                .collect()
        }
        Action::Age {
            tasks,
            until_stalled,
        } => {
            let until_stalled = *until_stalled;
            let lists = without_parts(tasks).into_iter();
            let lists = lists.filter(|tasks| !tasks.is_empty());
            let age = |tasks| Action::Age {
                tasks,
                until_stalled,
            };
            lists.map(age).collect()
        }
        Action::Stall {
            task,
            times,
            is_death,
        } => simpler_stalls(*task, *times, *is_death),
        Action::Show { even_started, .. } => vec![Action::Show {
            seed: 0,
            even_started: *even_started,
        }],
        Action::StartAgain { .. } => vec![Action::StartAgain { run: 0 }],
        Action::Recover | Action::StartRefused => Vec::new(),
    };
    actions.retain(|simpler| simpler != action);
    actions
}

fn simpler_postponements(
    pick: Pick,
    attempt: AttemptOf,
    delay: i32,
    too_long: bool,
) -> Vec<Action> {
    let with = |pick, attempt, delay, too_long| Action::Postpone {
        pick,
        attempt,
        delay,
        too_long,
    };
    let mut first = pick;
    first.number = 0;
    vec![
        with(first, attempt, delay, too_long),
        with(pick, AttemptOf::Current, delay, too_long),
        with(pick, attempt, 0, too_long),
        with(pick, attempt, delay, false),
    ]
}

fn simpler_stalls(task: usize, times: usize, is_death: bool) -> Vec<Action> {
    (1..times)
        .map(|times| (0, times))
        .chain([(task, times - 1), (0, times)])
        .filter(|&(_, times)| times > 0)
        .map(|(task, times)| Action::Stall {
            task,
            times,
            is_death,
        })
        .collect()
}

fn simpler_items(item: Item) -> Vec<Item> {
    let changes: [fn(&mut Item); 5] = [
        |item| item.pick.number = 0,
        |item| item.pick.among = Among::Started,
        |item| item.attempt = AttemptOf::Current,
        |item| item.output = 0,
        |item| item.shape = Shape::Right,
    ];
    let simpler = changes.into_iter().map(|change| {
        let mut simpler = item;
        change(&mut simpler);
        simpler
    });
    simpler.filter(|simpler| *simpler != item).collect()
}
