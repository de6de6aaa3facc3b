//! The invariants I1 to I8 on what was read, without asking the model.

use std::collections::BTreeMap;

use super::call::{Call, TaskKey};
use super::flow::Flow;
use super::rows::{RunRow, StepRow, TaskRow};
use super::setup::queue_name;
use super::snapshot::{Snapshot, run_number};

/// Fails with the first invariant that the state, or the way to it, breaks.
pub(crate) fn check(
    flow: &Flow,
    before: &Snapshot,
    after: &Snapshot,
    call: &Call,
) -> Result<(), String> {
    let broken = runs(after)
        .or_else(|| steps(flow, after))
        .or_else(|| tasks(flow, after))
        .or_else(|| messages(after))
        .or_else(|| terminal_rows_stay(before, after))
        .or_else(|| attempts(before, after, call))
        .or_else(|| events(before, after));
    broken.map_or(Ok(()), |what| Err(format!("invariant {what}")))
}

/// The steps of a run.
fn steps_of(state: &Snapshot, run: usize) -> impl Iterator<Item = &StepRow> {
    let steps = state.steps.range((run, 0)..=(run, usize::MAX));
    steps.map(|(_, row)| row.as_ref())
}

/// The tasks of a step.
fn tasks_of(state: &Snapshot, run: usize, step: usize) -> impl Iterator<Item = &TaskRow> {
    let key = |index| TaskKey { run, step, index };
    let tasks = state.tasks.range(key(0)..=key(usize::MAX));
    tasks.map(|(_, row)| row.as_ref())
}

fn runs(state: &Snapshot) -> Option<String> {
    for (&number, run) in &state.runs {
        let failed: Vec<&StepRow> = steps_of(state, number)
            .filter(|step| step.status == "failed")
            .collect();
        if failed.len() != usize::from(run.status == "failed") {
            return Some(format!(
                "I3: run {number} is {}, and has {} failed steps",
                run.status,
                failed.len()
            ));
        }
        if failed.first().is_some_and(|step| step.error != run.error) {
            return Some(format!(
                "I3: run {number} tells another error than its culprit"
            ));
        }
        let left = steps_of(state, number).filter(|step| !step.is_settled());
        if usize::try_from(run.remaining_steps) != Ok(left.count()) {
            let remaining = run.remaining_steps;
            return Some(format!("I5: run {number} has not {remaining} steps left"));
        }
        let ended_at = run.completed_at.or(run.failed_at);
        if run.completed_at.is_some() && run.failed_at.is_some()
            || ended_at.is_some() != run.has_ended()
            || ended_at.is_some_and(|at| at < run.started_at)
        {
            return Some(format!("I7: run {number}: {run:?}"));
        }
    }
    None
}

fn steps(flow: &Flow, state: &Snapshot) -> Option<String> {
    for (&(run, place), step) in &state.steps {
        let what = || format!("run {run} step {place} ({})", step.slug);
        let deps = &flow.steps.get(place)?.deps;
        let waiting = deps.iter().filter(|&&dep| {
            let dep = state.steps.get(&(run, dep));
            dep.is_some_and(|dep| !dep.is_settled())
        });
        if usize::try_from(step.remaining_deps) != Ok(waiting.count()) {
            let remaining = step.remaining_deps;
            return Some(format!(
                "I5: {} does not wait for {remaining} steps",
                what()
            ));
        }
        let all = tasks_of(state, run, place).count();
        let is_tolerant = flow.steps[place].is_tolerant;
        let does_without = |task: &TaskRow| is_tolerant && task.status == "failed";
        let left = tasks_of(state, run, place)
            .filter(|task| task.status != "completed" && !does_without(task))
            .count();
        let failed = tasks_of(state, run, place).filter(|task| does_without(task));
        if usize::try_from(step.failed_tasks) != Ok(failed.count()) {
            return Some(format!("I5: {} has other failed tasks: {step:?}", what()));
        }
        let has_counters = matches!(step.status.as_str(), "started" | "completed")
            || step.status == "failed" && step.started_at.is_some();
        let counted = |count: Option<i64>| count.map(|count| usize::try_from(count).ok());
        if has_counters
            && (counted(step.remaining_tasks) != Some(Some(left))
                || counted(step.initial_tasks) != Some(Some(all)))
        {
            return Some(format!(
                "I5: {} has {left} of {all} tasks left: {step:?}",
                what()
            ));
        }
        let active = tasks_of(state, run, place).any(TaskRow::is_active);
        if step.status == "skipped" && active {
            return Some(format!("I2: {} is skipped, and has an active task", what()));
        }
        let run_row = state.runs.get(&run)?;
        if !are_in_order(step, run_row) {
            return Some(format!("I7: {}: {step:?}", what()));
        }
    }
    None
}

fn are_in_order(step: &StepRow, run: &RunRow) -> bool {
    let ends = [step.completed_at, step.failed_at, step.skipped_at];
    let ended_at = step.ended_at();
    let run_ended_at = run.completed_at.or(run.failed_at);
    ends.iter().flatten().count() == usize::from(step.has_ended())
        && step.created_at >= run.started_at
        && step.started_at.is_none_or(|at| at >= step.created_at)
        && ended_at.is_none_or(|at| at >= step.started_at.unwrap_or(step.created_at))
        && (ended_at.is_none() || run_ended_at.is_none_or(|at| ended_at <= Some(at)))
}

fn tasks(flow: &Flow, state: &Snapshot) -> Option<String> {
    for (&key, task) in &state.tasks {
        let run = state.runs.get(&key.run)?;
        let step = state.steps.get(&(key.run, key.step))?;
        if task.is_active() && run.has_ended() {
            return Some(format!(
                "I1: {key} is {}, its run {}",
                task.status, run.status
            ));
        }
        if task.is_active() && step.status != "started" {
            return Some(format!(
                "I2: {key} is {}, its step {}",
                task.status, step.status
            ));
        }
        if task.status == "cancelled" && run.status != "failed" {
            return Some(format!("I3: {key} is cancelled, its run {}", run.status));
        }
        let is_live = task.message.is_some_and(|id| {
            let queue = if flow.own_queues { key.step + 1 } else { 0 };
            queue_name(queue) == task.queue && state.live.contains_key(&(queue, id))
        });
        if is_live != task.is_active() {
            let is = if is_live { "is" } else { "is not" };
            return Some(format!(
                "I4: {key} is {}, its message {is} live",
                task.status
            ));
        }
        let ended_at = task.completed_at.or(task.failed_at);
        let step_ended_at = step.ended_at();
        if task.completed_at.is_some() && task.failed_at.is_some()
            || task.started_at.is_some_and(|at| at < task.queued_at)
            || ended_at.is_some_and(|at| at < task.started_at.unwrap_or(task.queued_at))
            || (ended_at.is_some() && step_ended_at.is_some_and(|at| ended_at > Some(at)))
        {
            return Some(format!("I7: {key}: {task:?}"));
        }
    }
    None
}

/// Each message has one task, and is in one place.
fn messages(state: &Snapshot) -> Option<String> {
    let mut tasks: BTreeMap<(&str, i64), usize> = BTreeMap::new();
    for task in state.tasks.values() {
        if let Some(id) = task.message {
            *tasks.entry((&task.queue, id)).or_default() += 1;
        }
    }
    let names: Vec<String> = (0..=super::generator::MAX_STEPS).map(queue_name).collect();
    for &(queue, id) in state.live.keys().chain(&state.archived) {
        let owners = tasks.get(&(names[queue].as_str(), id)).copied();
        if owners != Some(1) {
            let owners = owners.unwrap_or(0);
            return Some(format!(
                "I4: message {id} of queue {queue} has {owners} tasks"
            ));
        }
    }
    let twice = state.live.keys().find(|id| state.archived.contains(id));
    twice.map(|id| format!("I4: message {id:?} is live and archived"))
}

/// Checks that ended rows do not change.
fn terminal_rows_stay(before: &Snapshot, after: &Snapshot) -> Option<String> {
    for (number, old) in &before.runs {
        if old.has_ended() && after.runs.get(number) != Some(old) {
            return Some(format!("I6: run {number} had ended, and changed"));
        }
    }
    for (key, old) in &before.steps {
        let outcome = |step: &StepRow| {
            let ended = (step.status.clone(), step.ended_at(), step.started_at);
            let why = (step.error.clone(), step.skip_reason.clone());
            (ended, why, step.output.clone())
        };
        let new = after.steps.get(key);
        if old.has_ended() && new.is_none_or(|new| outcome(old) != outcome(new)) {
            return Some(format!("I6: run and step {key:?} had ended, and changed"));
        }
    }
    for (key, old) in &before.tasks {
        if !old.is_active() && after.tasks.get(key) != Some(old) {
            return Some(format!("I6: {key} had ended, and changed"));
        }
    }
    None
}

/// An attempt is counted when it starts, and never taken back.
fn attempts(before: &Snapshot, after: &Snapshot, call: &Call) -> Option<String> {
    for (key, new) in &after.tasks {
        let change = match before.tasks.get(key) {
            None => new.attempts,
            Some(old) => new.attempts - old.attempts,
        };
        let old = before.tasks.get(key).map(|old| old.status.as_str());
        let allowed = match (old, new.status.as_str(), call) {
            (Some("queued"), "started", Call::Claim { .. }) => 1,
            _ => 0,
        };
        if change != allowed {
            return Some(format!(
                "I8: {key} went {old:?} -> {}: {change:+} attempts",
                new.status
            ));
        }
        let is_alone = new.status == "started" && new.runs_alone;
        let beside = after.tasks.iter().find(|(other, task)| {
            is_alone && *other != key && task.status == "started" && task.worker == new.worker
        });
        if let Some((other, _)) = beside {
            return Some(format!(
                "I10: {key} is to run alone, and {other} runs beside it"
            ));
        }
    }
    None
}

/// Checks that each end in this call sent one event, and nothing else did.
fn events(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let mut told: BTreeMap<(usize, &str, &str), usize> = BTreeMap::new();
    for event in &after.events {
        let text = |key: &str| event.payload[key].as_str().unwrap_or_default();
        let (_, outcome) = text("event_type").split_once(':').unwrap_or_default();
        if outcome != "started" {
            let run = run_number(text("run_id").parse().unwrap_or_default());
            *told.entry((run, text("step_slug"), outcome)).or_default() += 1;
        }
    }
    for (&number, run) in &after.runs {
        let had_ended = before.runs.get(&number).is_some_and(|old| old.has_ended());
        let times = told.remove(&(number, "", run.status.as_str())).unwrap_or(0);
        if times != usize::from(run.has_ended() && !had_ended) {
            return Some(format!(
                "I6: the end of run {number} was told {times} times"
            ));
        }
    }
    for (&(run, place), step) in &after.steps {
        let old = before.steps.get(&(run, place));
        let had_ended = old.is_some_and(|old| old.has_ended());
        let key = (run, step.slug.as_str(), step.status.as_str());
        let times = told.remove(&key).unwrap_or(0);
        if times != usize::from(step.has_ended() && !had_ended) {
            return Some(format!(
                "I6: the end of run {run} step {place} was told {times} times"
            ));
        }
    }
    told.into_keys()
        .next()
        .map(|event| format!("I6: {event:?} was told, and is not so"))
}
