//! The model's state and answers against the database's. What the model leaves to the database is
//! checked for being allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde_json::Value;

use super::call::{Answer, TaskKey};
use super::rows::{MessageRow, RunRow, StepRow, Stored, TaskRow};
use super::setup::{queue_name, worker_id};
use super::snapshot::Snapshot;
use super::state::{Hidden, Message, Model, Run, Task, TaskStatus, Text};

/// Says what differs, the model's first.
pub(crate) fn same<T: PartialEq + Debug>(
    what: impl FnOnce() -> String,
    model: &T,
    sql: &T,
) -> Result<(), String> {
    if model == sql {
        Ok(())
    } else {
        Err(format!("{}: model {model:?}, SQL {sql:?}", what()))
    }
}

pub(crate) fn same_text(
    what: impl FnOnce() -> String,
    model: Option<&Text>,
    sql: Option<&str>,
) -> Result<(), String> {
    let agree = match (model, sql) {
        (None, None) => true,
        (Some(model), Some(sql)) => model.allows(sql),
        _ => false,
    };
    if agree {
        Ok(())
    } else {
        Err(format!("{}: model {model:?}, SQL {sql:?}", what()))
    }
}

pub(crate) fn answers(model: &Answer, sql: &Answer) -> Result<(), String> {
    if let (Answer::Claimed(model), Answer::Claimed(sql)) = (model, sql) {
        for (place, (model, sql)) in model.iter().zip(sql).enumerate() {
            same(|| format!("claimed row {place}"), model, sql)?;
        }
        return same(
            || "number of claimed rows".to_owned(),
            &model.len(),
            &sql.len(),
        );
    }
    same(|| "answer".to_owned(), model, sql)
}

/// Tells the model which messages its new tasks got: each a new one, younger than all that the
/// queue had before.
pub(crate) fn adopt_messages(
    model: &mut Model,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<(), String> {
    let unsent = model
        .tasks()
        .filter(|(_, task)| task.message.id.is_none())
        .map(|(key, _)| key);
    let unsent: Vec<TaskKey> = unsent.collect();
    let mut taken = BTreeSet::new();
    for key in unsent {
        let Some(id) = after.tasks.get(&key).and_then(|row| row.message) else {
            return Err(format!(
                "{key} is queued in the model; SQL has no message of it"
            ));
        };
        let queue = model.task_mut(key).message.queue;
        let known = before.live.keys().chain(&before.archived);
        if known
            .into_iter()
            .any(|&(other, old)| other == queue && old >= id)
        {
            return Err(format!("{key}: message {id} is not new in queue {queue}"));
        }
        if !taken.insert((queue, id)) {
            return Err(format!(
                "{key}: message {id} of queue {queue} has two tasks"
            ));
        }
        model.task_mut(key).message.id = Some(id);
    }
    Ok(())
}

/// The state after a call. `before` is the state that the call found.
pub(crate) fn states(model: &Model, before: &Snapshot, after: &Snapshot) -> Result<(), String> {
    same(
        || "number of runs".to_owned(),
        &model.runs.len(),
        &after.runs.len(),
    )?;
    for (number, run) in model.runs.iter().enumerate() {
        let Some(row) = after.runs.get(&number) else {
            return Err(format!("SQL has no run {number}"));
        };
        runs(model, number, run, row)?;
        for place in 0..run.steps.len() {
            let Some(row) = after.steps.get(&(number, place)) else {
                return Err(format!("SQL has no state of run {number} step {place}"));
            };
            steps(model, number, place, row)?;
        }
    }
    let expected: BTreeMap<TaskKey, &Task> = model.tasks().collect();
    for (key, row) in &after.tasks {
        let Some(task) = expected.get(key) else {
            return Err(format!("SQL has {key}, which is no task: {row:?}"));
        };
        tasks(*key, task, row)?;
    }
    same(
        || "number of tasks".to_owned(),
        &expected.len(),
        &after.tasks.len(),
    )?;
    messages(model, before, after)
}

fn as_i64(number: usize) -> i64 {
    i64::try_from(number).expect("a small number")
}

fn same_json(
    what: impl FnOnce() -> String,
    model: Option<&Value>,
    sql: &Stored,
) -> Result<(), String> {
    same(what, &model, &sql.as_ref().map(|(value,)| value))
}

fn runs(model: &Model, number: usize, run: &Run, row: &RunRow) -> Result<(), String> {
    let what = |column: &'static str| move || format!("run {number}, {column}");
    same(what("status"), &run.status.name(), &row.status.as_str())?;
    let remaining = as_i64(model.remaining_steps(number));
    same(what("remaining_steps"), &remaining, &row.remaining_steps)?;
    same_json(what("input"), Some(&run.input), &row.input)?;
    same_json(what("output"), run.output.as_ref(), &row.output)?;
    same_text(what("error"), run.error.as_ref(), row.error.as_deref())
}

fn steps(model: &Model, run: usize, place: usize, row: &StepRow) -> Result<(), String> {
    let what = |column: &'static str| {
        move || {
            let slug = &row.slug;
            format!("run {run} step {place} ({slug}), {column}")
        }
    };
    let state = &model.runs[run].steps[place];
    same(what("status"), &state.status.name(), &row.status.as_str())?;
    let initial = model.initial_tasks(run, place).map(as_i64);
    same(what("initial_tasks"), &initial, &row.initial_tasks)?;
    let remaining = model.remaining_tasks(run, place).map(as_i64);
    same(what("remaining_tasks"), &remaining, &row.remaining_tasks)?;
    let failed = as_i64(model.failed_tasks(run, place));
    same(what("failed_tasks"), &failed, &row.failed_tasks)?;
    let deps = as_i64(model.remaining_deps(run, place));
    same(what("remaining_deps"), &deps, &row.remaining_deps)?;
    same_json(what("output"), state.output.as_ref(), &row.output)?;
    same(
        what("skip_reason"),
        &state.skip_reason,
        &row.skip_reason.as_deref(),
    )?;
    same_text(what("error"), state.error.as_ref(), row.error.as_deref())
}

fn tasks(key: TaskKey, task: &Task, row: &TaskRow) -> Result<(), String> {
    let what = |column: &'static str| move || format!("{key}, {column}");
    same(what("status"), &task.status.name(), &row.status.as_str())?;
    same(what("attempts"), &task.attempts, &row.attempts)?;
    same(what("uncounted"), &task.uncounted, &row.uncounted)?;
    same(what("postponed"), &task.postponed, &row.postponed)?;
    same(what("runs alone"), &task.runs_alone, &row.runs_alone)?;
    same(what("requeues"), &task.requeues, &row.requeues)?;
    same(
        what("permanently stalled"),
        &task.is_permanently_stalled,
        &row.is_permanently_stalled,
    )?;
    same(what("queue"), &queue_name(task.message.queue), &row.queue)?;
    same(what("message"), &task.message.id, &row.message)?;
    same_json(what("element"), task.element.as_ref(), &row.element)?;
    same_json(what("output"), task.output.as_ref(), &row.output)?;
    if task.status == TaskStatus::Started {
        let worker = task.worker.map(worker_id);
        same(what("worker"), &worker, &row.worker)?;
    }
    if task.status == TaskStatus::Queued {
        same(what("start time"), &None, &row.started_at)?;
    }
    same_text(what("error"), task.error.as_ref(), row.error.as_deref())
}

fn messages(model: &Model, before: &Snapshot, after: &Snapshot) -> Result<(), String> {
    let mut live = BTreeSet::new();
    let mut archived = BTreeSet::new();
    for (key, task) in model.tasks() {
        let message = &task.message;
        let id = (message.queue, message.id.expect("it was sent"));
        if message.is_archived {
            archived.insert(id);
            continue;
        }
        live.insert(id);
        let Some(row) = after.live.get(&id) else {
            return Err(format!(
                "{key}: its message {id:?} is in the model's queue, not in SQL's"
            ));
        };
        same(|| format!("{key}, reads"), &message.reads, &row.reads)?;
        let started_at = after.tasks.get(&key).and_then(|row| row.started_at);
        let deadline =
            started_at.map(|at| at + (i64::from(model.flow.timeout(key.step)) + 30) * 1_000_000);
        let is_new = message.decided_in == model.call;
        visibility(key, message, row, before, after, is_new, deadline)?;
    }
    let found: BTreeSet<(usize, i64)> = after.live.keys().copied().collect();
    let only = |one: &BTreeSet<(usize, i64)>, other: &BTreeSet<(usize, i64)>| {
        let only: Vec<(usize, i64)> = one.difference(other).copied().collect();
        only
    };
    // Queue and id of what only one of them has.
    let what = || "messages that are live".to_owned();
    same(what, &only(&live, &found), &only(&found, &live))?;
    let what = || "messages that are archived".to_owned();
    let found = &after.archived;
    same(what, &only(&archived, found), &only(found, &archived))
}

/// From when a message can be read. A call happens after the snapshot before it and before the one
/// after it.
fn visibility(
    key: TaskKey,
    message: &Message,
    row: &MessageRow,
    before: &Snapshot,
    after: &Snapshot,
    is_new: bool,
    deadline: Option<i64>,
) -> Result<(), String> {
    const SECOND: i64 = 1_000_000;
    let allowed = match message.hidden {
        _ if !is_new => {
            let old = before.live.get(&(message.queue, row.id));
            let old = old.map_or(row.visible_at, |old| old.visible_at);
            old..=old
        }
        Hidden::No => before.time..=after.time,
        Hidden::Seconds(seconds) => before.time + seconds * SECOND..=after.time + seconds * SECOND,
        Hidden::Between(least, most) => before.time + least * SECOND..=after.time + most * SECOND,
        Hidden::UntilRecovery => {
            let deadline = deadline.unwrap_or(0);
            // Rounded up, and counted from a moment later.
            deadline..=deadline + SECOND + (after.time - before.time)
        }
        Hidden::Briefly => before.time..=after.time + SECOND,
    };
    if allowed.contains(&row.visible_at) {
        return Ok(());
    }
    let seconds = (row.visible_at - before.time) / SECOND;
    Err(format!(
        "{key}: its message is to be hidden ({:?}, decided {}); SQL hides it for {seconds} s",
        message.hidden,
        if is_new { "by this call" } else { "earlier" }
    ))
}
