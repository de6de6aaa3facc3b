use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use pgflow_macros::flow;
use serde_json::{Value, json, value::to_raw_value};
use uuid::Uuid;

use self::simulated::Simulated;
use super::*;
use crate::{
    client::{SkipReason, TaskCounts},
    flow::{StepId, StepResult},
};

mod simulated;

struct Diamond;

#[flow(input = (), crate = crate)]
impl Diamond {
    #[step]
    async fn list() -> StepResult<Vec<i64>> {
        Ok(vec![])
    }

    #[step(map = list)]
    async fn each(item: i64) -> StepResult<i64> {
        Ok(item)
    }

    #[step]
    async fn gift() -> StepResult<i64> {
        Ok(1)
    }

    #[step(depends_on = [gift])]
    async fn card(gift: i64) -> StepResult<i64> {
        Ok(gift)
    }

    #[step(depends_on = [each, card])]
    async fn parcel(each: &[i64], card: i64) -> StepResult<i64> {
        Ok(card + each.iter().sum::<i64>())
    }
}

/// The columns of the run that change, and the rows of its steps.
fn snapshot(started_at: DateTime<Utc>, run: &Value, steps: &[Value]) -> RunSnapshot<Diamond> {
    let mut run = run.clone();
    run["run_id"] = json!(Uuid::nil());
    run["flow_slug"] = json!("diamond");
    run["remaining_steps"] = json!(0);
    run["started_at"] = json!(started_at);
    let json = to_raw_value(&json!({"run": run, "steps": steps})).unwrap();
    RunSnapshot::read(Uuid::nil(), &json).unwrap()
}

fn step(slug: &str, status: &str, columns: &Value) -> Value {
    let mut step = columns.clone();
    step["step_slug"] = json!(slug);
    step["status"] = json!(status);
    step["remaining_deps"] = json!(0);
    step["created_at"] = json!(at(0));
    step
}

fn at(second: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
}

/// As the log of a simulated run has it; progress, which that has not, as `each 1 of 3`.
fn describe(event: &RunEvent<Step>) -> String {
    let what = match event {
        RunEvent::RunStarted { .. } => return "run started".to_owned(),
        RunEvent::RunCompleted { .. } => return "run completed".to_owned(),
        RunEvent::RunFailed { .. } => return "run failed".to_owned(),
        RunEvent::StepStarted { .. } => "started".to_owned(),
        RunEvent::StepProgressed { tasks, .. } => format!("{} of {}", tasks.completed, tasks.total),
        RunEvent::StepCompleted { .. } => "completed".to_owned(),
        RunEvent::StepFailed { .. } => "failed".to_owned(),
        RunEvent::StepSkipped { .. } => "skipped".to_owned(),
    };
    format!("{} {what}", event.step().unwrap().slug())
}

fn told(history: &mut History<Diamond>, seen: &RunSnapshot<Diamond>) -> Vec<String> {
    let events = history.tell(seen).unwrap();
    events.iter().map(describe).collect()
}

fn is_progress(event: &str) -> bool {
    event.contains(" of ")
}

/// Looks at a simulated run in any order: each look tells what has happened up to it and was not
/// told before.
fn check(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let is_clock_bad = rng.bool();
    let Simulated { log, looks } = Simulated::new(&mut rng, is_clock_bad);
    let mut order: Vec<usize> = (0..rng.usize(1..12))
        .map(|_| rng.usize(..looks.len()))
        .collect();
    // Stale looks lie among those that go forward.
    if rng.bool() {
        order.sort_unstable();
        let stale = rng.usize(..order.len());
        order.insert(rng.usize(..=order.len()), order[stale]);
    }
    order.push(looks.len() - 1);
    order.push(rng.usize(..looks.len()));

    let mut history = History::new();
    let mut all: Vec<String> = Vec::new();
    let mut furthest = 0;
    for look in order {
        let (snapshot, happened) = &looks[look];
        let mut events = told(&mut history, snapshot);
        all.extend(events.iter().cloned());
        events.retain(|event| !is_progress(event));
        let new = &log[furthest..(*happened).max(furthest)];
        if is_clock_bad {
            let mut expected = new.to_vec();
            expected.sort();
            events.sort();
            assert_eq!(events, expected, "seed {seed}");
        } else {
            assert_eq!(events, new, "seed {seed}");
        }
        furthest = furthest.max(*happened);
    }
    assert!(history.is_ended(), "seed {seed}");
    assert_in_order(seed, &all);
}

/// Asserts the guarantees of the whole stream, independent of the snapshots and the clock.
fn assert_in_order(seed: u64, all: &[String]) {
    let place: HashMap<&str, usize> = all
        .iter()
        .enumerate()
        .map(|(place, event)| (event.as_str(), place))
        .collect();
    assert_eq!(place.len(), all.len(), "seed {seed}: told twice: {all:?}");
    assert_eq!(all[0], "run started", "seed {seed}");
    assert!(
        all.last().unwrap().starts_with("run "),
        "seed {seed}: {all:?}"
    );
    let find = |slug: &str, what: &str| place.get(format!("{slug} {what}").as_str()).copied();
    let end = |slug: &str| {
        let ends = ["completed", "failed", "skipped"];
        ends.iter().find_map(|what| find(slug, what))
    };
    for step in Diamond::DEFINITION.steps {
        let started = find(step.slug, "started");
        let progress: Vec<usize> = (1..4)
            .flat_map(|done| (1..4).map(move |of| format!("{done} of {of}")))
            .filter_map(|what| find(step.slug, &what))
            .collect();
        let dependencies = step.depends_on.iter().map(|slug| end(slug));
        let of_step: Vec<Option<usize>> = [started]
            .into_iter()
            .chain(progress.into_iter().map(Some))
            .chain([end(step.slug)])
            .collect();
        // A step that is skipped has not started, unless it ran; what has not ended with its run
        // has no end.
        let known: Vec<usize> = of_step.iter().flatten().copied().collect();
        assert!(known.is_sorted(), "seed {seed}: `{}`: {all:?}", step.slug);
        if find(step.slug, "completed").is_some() {
            assert!(started.is_some(), "seed {seed}: {all:?}");
        }
        if let Some(started) = started {
            for dependency in dependencies {
                assert!(
                    dependency.is_some_and(|ended| ended < started),
                    "seed {seed}: `{}` started too soon: {all:?}",
                    step.slug
                );
            }
        }
    }
}

#[test]
fn whatever_is_seen_each_transition_is_told_once_and_in_order() {
    for seed in 0..1000 {
        check(seed);
    }
}

#[test]
fn a_state_that_was_jumped_over_is_told_too() {
    let mut history = History::new();
    let started = json!({"status": "started"});
    let created: Vec<Value> = ["list", "each", "gift", "card", "parcel"]
        .map(|slug| step(slug, "created", &json!({})))
        .into();
    assert_eq!(
        told(&mut history, &snapshot(at(0), &started, &created)),
        ["run started"]
    );
    let mut steps = created.clone();
    let columns = json!({"started_at": at(1), "completed_at": at(4), "initial_tasks": 1, "remaining_tasks": 0});
    steps[0] = step("list", "completed", &columns);
    // The clock was set back before it started.
    let columns = json!({"started_at": at(2), "initial_tasks": 3, "remaining_tasks": 1});
    steps[1] = step("each", "started", &columns);
    let columns = json!({"skipped_at": at(3), "skip_reason": "condition_unmet"});
    steps[2] = step("gift", "skipped", &columns);
    let seen = snapshot(at(0), &started, &steps);
    let expected = [
        "list started",
        "gift skipped",
        "list completed",
        "each started",
        "each 2 of 3",
    ];
    assert_eq!(told(&mut history, &seen), expected);
    // Once, and nothing goes backwards.
    assert!(told(&mut history, &seen).is_empty());
    assert!(told(&mut history, &snapshot(at(0), &started, &created)).is_empty());
}

#[test]
fn elements_that_failed_without_their_step_are_progress_and_are_counted_apart() {
    let mut history = History::<Diamond>::new();
    let started = json!({"status": "started"});
    let mut seen = Vec::new();
    for (remaining, failed) in [(3, 0), (2, 1), (1, 1), (1, 1), (0, 2)] {
        let status = if remaining == 0 {
            "completed"
        } else {
            "started"
        };
        let mut columns = json!({
            "started_at": at(1), "initial_tasks": 3, "remaining_tasks": remaining, "failed_tasks": failed
        });
        if remaining == 0 {
            columns["completed_at"] = json!(at(2));
        }
        let each = step("each", status, &columns);
        let events = history.tell(&snapshot(at(0), &started, &[each])).unwrap();
        for event in events {
            if let RunEvent::StepProgressed { tasks, .. } = event {
                seen.push((tasks.completed, tasks.failed, tasks.total));
            }
        }
    }
    assert_eq!(seen, [(0, 1, 3), (1, 1, 3)]);
}

#[tokio::test]
async fn the_events_are_a_stream() {
    fn assert_stream<S: Stream + Send + Unpin>(stream: S) -> S {
        stream
    }
    let started = || RunEvent::RunStarted { at: at(0) };
    let run_id = Uuid::nil();
    let items = [Ok(started()), Err(ClientError::NotFound { run_id })];
    let events = assert_stream(RunEvents::<Diamond> {
        stream: futures_util::stream::iter(items).boxed(),
    });
    let items: Vec<_> = events.collect().await;
    match &items[..] {
        [Ok(event), Err(ClientError::NotFound { .. })] => assert_eq!(*event, started()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_say_when_why_and_how_many() {
    let columns = json!({"started_at": at(1), "failed_at": at(2), "initial_tasks": 2, "remaining_tasks": 1, "error_message": "out of paper"});
    let steps = [step("each", "failed", &columns)];
    let run = json!({"status": "failed", "failed_at": at(3), "error_message": "out of paper"});
    let events = History::new().tell(&snapshot(at(0), &run, &steps)).unwrap();
    let message = "out of paper".to_owned();
    let step = Step::Each;
    let expected = [
        RunEvent::RunStarted { at: at(0) },
        RunEvent::StepStarted {
            step,
            tasks: 2,
            at: at(1),
        },
        RunEvent::StepFailed {
            step,
            message: message.clone(),
            at: at(2),
        },
        RunEvent::RunFailed {
            step: Some(step),
            message,
            at: at(3),
        },
    ];
    assert_eq!(events, expected);
    assert_eq!(
        events.iter().map(RunEvent::is_end).collect::<Vec<_>>(),
        [false, false, false, true]
    );
}

#[test]
fn a_run_that_took_the_place_of_the_one_that_was_followed_is_not_told() {
    let mut history = History::<Diamond>::new();
    let run = json!({"status": "started"});
    history.tell(&snapshot(at(0), &run, &[])).unwrap();
    let error = history.tell(&snapshot(at(1), &run, &[])).unwrap_err();
    assert!(matches!(error, ClientError::NotFound { .. }), "{error}");
}

#[test]
fn a_step_that_the_flow_does_not_have_is_named() {
    let steps = [step("ribbon", "created", &json!({}))];
    let seen = snapshot(at(0), &json!({"status": "started"}), &steps);
    let error = History::new().tell(&seen).unwrap_err();
    let start = format!(
        "run {} has a step `ribbon`, which flow `diamond` ",
        Uuid::nil()
    );
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn each_event_has_its_documented_form() {
    let at = DateTime::UNIX_EPOCH;
    let time = "1970-01-01T00:00:00Z";
    let step = Step::Each;
    let message = "no".to_owned();
    let forms = [
        (
            RunEvent::RunStarted { at },
            json!({"type": "run_started", "at": time}),
        ),
        (
            RunEvent::StepStarted { step, tasks: 3, at },
            json!({"type": "step_started", "step": "each", "tasks": 3, "at": time}),
        ),
        (
            RunEvent::StepProgressed {
                step,
                tasks: TaskCounts {
                    total: 3,
                    completed: 2,
                    failed: 0,
                },
            },
            json!({"type": "step_progressed", "step": "each", "completed": 2, "tasks": 3}),
        ),
        (
            RunEvent::StepProgressed {
                step,
                tasks: TaskCounts {
                    total: 9,
                    completed: 2,
                    failed: 1,
                },
            },
            json!({"type": "step_progressed", "step": "each", "completed": 2, "failed": 1, "tasks": 9}),
        ),
        (
            RunEvent::StepCompleted { step, tasks: 3, at },
            json!({"type": "step_completed", "step": "each", "tasks": 3, "at": time}),
        ),
        (
            RunEvent::StepFailed {
                step,
                message: message.clone(),
                at,
            },
            json!({"type": "step_failed", "step": "each", "message": "no", "at": time}),
        ),
        (
            RunEvent::StepSkipped {
                step,
                reason: SkipReason::ConditionUnmet,
                message: None,
                at,
            },
            json!({"type": "step_skipped", "step": "each", "reason": "condition_unmet", "at": time}),
        ),
        (
            RunEvent::RunCompleted { at },
            json!({"type": "run_completed", "at": time}),
        ),
        (
            RunEvent::RunFailed {
                step: None,
                message,
                at,
            },
            json!({"type": "run_failed", "message": "no", "at": time}),
        ),
    ];
    for (event, form) in forms {
        assert_eq!(serde_json::to_value(&event).expect("JSON"), form);
    }
}
