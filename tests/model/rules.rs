//! The calls, as the design describes them, on the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uuid::Uuid;

use super::call::{Answer, Call, ClaimedRow, Completion, Failure, TaskKey};
use super::flow::Flow;
use super::machine::hidden_for;
use super::state::{
    Event, Hidden, Model, Run, RunStatus, StepState, StepStatus, Task, TaskStatus, Text,
};

/// The error codes of calls that are refused.
const UNKNOWN_TASK: &str = "PF003";
const INVALID_INPUT: &str = "PF005";
const INVALID_ARGUMENT: &str = "PF009";

/// The cap of the backoff, in seconds; no flow of the model sets another.
const MAX_DELAY: i64 = 3600;

impl Model {
    pub(crate) fn new(flow: Flow) -> Self {
        Self {
            flow,
            runs: Vec::new(),
            alone: BTreeMap::new(),
            events: Vec::new(),
            call: 0,
        }
    }

    /// Does a call. `next_run` is the id of the run that the next start makes. Returns the answer
    /// and the events.
    pub(crate) fn apply(&mut self, call: &Call, next_run: Uuid) -> (Answer, Vec<Event>) {
        self.call += 1;
        let answer = match call {
            Call::Start { input } => self.start(input, next_run),
            Call::StartAgain { run, input } => match &self.runs[*run] {
                stored if stored.input == *input => Answer::Run(stored.status.name().to_owned()),
                _ => Answer::Refused(INVALID_ARGUMENT.to_owned()),
            },
            Call::Claim { worker, max } => self.claim(*worker, *max),
            Call::Complete(items) => self.complete(items),
            Call::CompleteOne(item) => match self.complete(std::slice::from_ref(item)) {
                Answer::Items { .. } => self.row(item.task),
                refused => refused,
            },
            Call::Fail(failure) => self.fail(failure),
            Call::Release { worker, tasks } => self.release(*worker, tasks),
            Call::Postpone {
                task,
                attempt,
                cause,
                delay,
                too_long,
            } => self.postpone(*task, *attempt, cause, *delay, *too_long),
            Call::Recover => self.recover(None),
            Call::Lose { worker } => {
                let answer = self.recover(Some(*worker));
                self.alone.remove(worker);
                answer
            }
            Call::Age { tasks, seconds } => {
                for &key in tasks {
                    self.task_mut(key).age += i64::from(*seconds);
                }
                Answer::Done
            }
            Call::Show { tasks } => {
                for &key in tasks {
                    self.hide(key, Hidden::No);
                }
                Answer::Done
            }
        };
        (answer, std::mem::take(&mut self.events))
    }

    fn row(&self, key: TaskKey) -> Answer {
        let task = self.task(key).expect("the task exists");
        Answer::Task {
            status: task.status.name().to_owned(),
            attempts: task.attempts,
        }
    }

    /// Returns whether a task, its step and its run are running.
    fn is_running(&self, key: TaskKey) -> bool {
        let run = &self.runs[key.run];
        let step = &run.steps[key.step];
        run.status == RunStatus::Started
            && step.status == StepStatus::Started
            && step.tasks[key.index].status == TaskStatus::Started
    }

    /// Returns whether a report speaks for the attempt that is running.
    fn is_current(&self, key: TaskKey, attempt: Option<i32>) -> bool {
        let current = self.task(key).map(|task| task.attempts);
        self.is_running(key) && (attempt.is_none() || attempt == current)
    }

    fn start(&mut self, input: &Value, id: Uuid) -> Answer {
        if self.flow.has_root_map() && !input.is_array() {
            return Answer::Refused(INVALID_INPUT.to_owned());
        }
        let step = StepState {
            status: StepStatus::Created,
            output: None,
            error: None,
            skip_reason: None,
            tasks: Vec::new(),
        };
        self.runs.push(Run {
            id,
            status: RunStatus::Started,
            input: input.clone(),
            output: None,
            error: None,
            steps: vec![step; self.flow.steps.len()],
        });
        let run = self.runs.len() - 1;
        self.emit("run:started", run, None);
        self.advance(run);
        Answer::Run(self.runs[run].status.name().to_owned())
    }

    /// Returns whether a worker has a task that runs.
    fn is_busy(&self, worker: usize) -> bool {
        self.tasks()
            .any(|(_, task)| task.status == TaskStatus::Started && task.worker == Some(worker))
    }

    /// Nothing runs beside an attempt alone: until its worker runs nothing else it starts nothing,
    /// then that attempt, then nothing until it has ended.
    fn claim(&mut self, worker: usize, max: usize) -> Answer {
        if let Some(&(key, attempt)) = self.alone.get(&worker) {
            let task = self.task(key).expect("a task stays");
            let runs_here = task.status == TaskStatus::Started
                && task.attempts == attempt
                && task.worker == Some(worker);
            let is_waiting = task.status == TaskStatus::Queued && task.attempts == attempt - 1;
            if runs_here || (is_waiting && self.is_busy(worker)) {
                return Answer::Claimed(Vec::new());
            }
            if is_waiting {
                return Answer::Claimed(vec![self.take(key, worker)]);
            }
            self.alone.remove(&worker);
        }
        self.claim_visible(worker, max)
    }

    /// Takes the messages of the worker's queue that have been visible for longest.
    fn claim_visible(&mut self, worker: usize, max: usize) -> Answer {
        let mut visible: Vec<(usize, i64, TaskKey)> = self
            .tasks()
            .filter(|(_, task)| {
                let message = &task.message;
                message.queue == worker / 2 && !message.is_archived && message.hidden == Hidden::No
            })
            .map(|(key, task)| {
                let message = &task.message;
                (message.decided_in, message.id.expect("it was sent"), key)
            })
            .collect();
        visible.sort_unstable();
        let read: Vec<TaskKey> = visible.into_iter().take(max).map(|(.., key)| key).collect();
        for &key in &read {
            if self.is_running(key) {
                // It runs elsewhere: no attempt is counted.
                self.task_mut(key).message.reads += 1;
                let is_stalled = self.is_stalled(key);
                let hidden = if is_stalled {
                    Hidden::Briefly
                } else {
                    Hidden::UntilRecovery
                };
                self.hide(key, hidden);
            }
        }
        let waiting = |key: &TaskKey, runs_alone| {
            let task = self.task(*key).expect("its message was read");
            task.status == TaskStatus::Queued && task.runs_alone == runs_alone
        };
        let alone: Vec<TaskKey> = read
            .iter()
            .copied()
            .filter(|key| waiting(key, true))
            .collect();
        let others: Vec<TaskKey> = read
            .iter()
            .copied()
            .filter(|key| waiting(key, false))
            .collect();
        let is_idle = !self.is_busy(worker);
        // One that another worker makes room for is left to it, but by a worker that runs nothing.
        let chosen = alone
            .iter()
            .copied()
            .find(|key| is_idle || !self.alone.values().any(|(noted, _)| noted == key));
        if let Some(key) = chosen {
            let attempts = self.task_mut(key).attempts;
            self.alone.insert(worker, (key, attempts + 1));
            let rows = is_idle.then(|| self.take(key, worker));
            return Answer::Claimed(rows.into_iter().collect());
        }
        for key in alone {
            self.task_mut(key).message.reads += 1;
            self.hide(key, Hidden::Briefly);
        }
        let rows = others.into_iter().map(|key| self.take(key, worker));
        let mut rows: Vec<ClaimedRow> = rows.collect();
        // They return in the order in which they were sent.
        rows.sort_unstable_by_key(|row| row.message);
        Answer::Claimed(rows)
    }

    fn take(&mut self, key: TaskKey, worker: usize) -> ClaimedRow {
        let timeout = self.flow.timeout(key.step);
        let task = self.task_mut(key);
        task.message.reads += 1;
        task.status = TaskStatus::Started;
        task.attempts += 1;
        task.worker = Some(worker);
        task.age = 0;
        let message = task.message.id.expect("it was sent");
        self.hide(key, Hidden::Seconds(i64::from(timeout) + 2));
        self.claimed(key, worker, message)
    }

    fn claimed(&self, key: TaskKey, worker: usize, message: i64) -> ClaimedRow {
        let definition = &self.flow.steps[key.step];
        let task = self.task(key).expect("it was claimed");
        let run = &self.runs[key.run];
        let gets_flow_input = definition.is_map || !definition.deps.is_empty();
        let input = match &task.element {
            Some(element) => element.clone(),
            None if gets_flow_input => self.dependency_outputs(key.run, key.step),
            None => run.input.clone(),
        };
        ClaimedRow {
            task: key,
            attempt: task.attempts,
            max_attempts: self.flow.max_attempts(key.step)
                + task.uncounted
                + i32::from(task.runs_alone),
            timeout: self.flow.timeout(key.step),
            queue: task.message.queue,
            message,
            reads: task.message.reads,
            input,
            flow_input: (gets_flow_input && worker % 2 == 1).then(|| run.input.clone()),
        }
    }

    /// A batch is all or nothing. A type violation fails its run before anything else of that run
    /// completes; what does complete, completes before any run continues.
    fn complete(&mut self, items: &[Completion]) -> Answer {
        if items.iter().any(|item| self.task(item.task).is_none()) {
            return Answer::Refused(UNKNOWN_TASK.to_owned());
        }
        let mut outcomes = vec!["stale".to_owned(); items.len()];
        let mut spoken_for = BTreeSet::new();
        let mut current: Vec<usize> = (0..items.len()).collect();
        current.retain(|&place| {
            let item = &items[place];
            self.is_current(item.task, item.attempt) && spoken_for.insert(item.task)
        });

        for &place in &current {
            let item = &items[place];
            let output = item.output.clone().unwrap_or(Value::Null);
            let violates = self.flow.must_return_array(item.task.step) && !output.is_array();
            if violates && self.is_running(item.task) {
                self.violate(item.task, output);
                "failed".clone_into(&mut outcomes[place]);
            }
        }

        let mut touched: BTreeMap<Uuid, BTreeSet<(usize, usize)>> = BTreeMap::new();
        for &place in &current {
            let item = &items[place];
            if self.is_running(item.task) {
                let output = item.output.clone().unwrap_or(Value::Null);
                self.task_mut(item.task).output = Some(output);
                self.end_task(item.task, TaskStatus::Completed);
                "completed".clone_into(&mut outcomes[place]);
                let TaskKey { run, step, .. } = item.task;
                let steps = touched.entry(self.runs[run].id).or_default();
                steps.insert((run, step));
            }
        }
        let mut made_ready = false;
        for steps in touched.into_values() {
            let mut ended = None;
            for (run, step) in steps {
                if self.remaining_tasks(run, step) == Some(0) {
                    let output = self.output_of_tasks(run, step);
                    self.complete_step(run, step, output);
                    ended = Some(run);
                }
            }
            made_ready |= ended.is_some_and(|run| self.advance(run));
        }
        Answer::Items {
            outcomes,
            made_ready,
        }
    }

    fn violate(&mut self, key: TaskKey, output: Value) {
        let error = Text::TypeViolation {
            source: self.flow.steps[key.step].slug.clone(),
            maps: self
                .flow
                .maps_over(key.step)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            json_type: json_type(&output),
        };
        let task = self.task_mut(key);
        task.error = Some(error.clone());
        task.output = Some(output);
        self.end_task(key, TaskStatus::Failed);
        self.fail_run(key.run, key.step, error);
    }

    pub(crate) fn output_of_tasks(&self, run: usize, step: usize) -> Value {
        let tasks = self.runs[run].steps[step].tasks.iter();
        let mut outputs = tasks.map(|task| match task.status {
            TaskStatus::Failed => Value::Null,
            _ => task.output.clone().expect("a completed task's"),
        });
        if self.flow.steps[step].is_map {
            outputs.collect()
        } else {
            outputs.next().expect("a single step has one task")
        }
    }

    fn fail(&mut self, failure: &Failure) -> Answer {
        let key = failure.task;
        if failure.retry_delay.is_some_and(|delay| delay < 0) {
            return Answer::Refused(INVALID_ARGUMENT.to_owned());
        }
        let Some(task) = self.task(key) else {
            return Answer::Refused(UNKNOWN_TASK.to_owned());
        };
        let failures = task.attempts - task.uncounted;
        if self.is_current(key, failure.attempt) {
            let error = Text::Is(failure.message.clone());
            self.task_mut(key).postponed = 0;
            self.task_mut(key).is_postponed_too_long = false;
            if failure.retryable && failures < self.flow.max_attempts(key.step) {
                let hidden = failure.retry_delay.map_or_else(
                    || backoff(self.flow.base_delay(key.step), failures),
                    |delay| hidden_for(i64::from(delay)),
                );
                self.task_mut(key).error = Some(error);
                self.queue_again(key, hidden);
            } else {
                self.exhaust(key, error);
            }
        }
        self.row(key)
    }

    /// The attempt does not count, unless nothing else has happened to the task for too long.
    fn postpone(
        &mut self,
        key: TaskKey,
        attempt: Option<i32>,
        cause: &str,
        delay: i32,
        too_long: bool,
    ) -> Answer {
        let is_started = self.task(key).map(|task| task.status) == Some(TaskStatus::Started);
        if too_long && is_started {
            let task = self.task_mut(key);
            task.postponed = task.postponed.max(1);
            // It stays so, also when the report comes too late.
            task.is_postponed_too_long = true;
        }
        if delay < 0 {
            return Answer::Refused(INVALID_ARGUMENT.to_owned());
        }
        if self.task(key).is_none() {
            return Answer::Refused(UNKNOWN_TASK.to_owned());
        }
        if self.is_current(key, attempt) {
            let task = self.task_mut(key);
            task.uncounted += 1;
            task.postponed += 1;
            if task.is_postponed_too_long {
                let error = Text::GivenUp(task.postponed);
                self.exhaust(key, error);
            } else {
                task.error = Some(Text::Is(cause.to_owned()));
                let delay = i64::from(delay);
                let hidden = match delay {
                    0 => Hidden::No,
                    _ => Hidden::Between(delay, delay + delay / 10),
                };
                self.queue_again(key, hidden);
            }
        }
        self.row(key)
    }

    fn queue_again(&mut self, key: TaskKey, hidden: Hidden) {
        let task = self.task_mut(key);
        task.status = TaskStatus::Queued;
        task.worker = None;
        task.age = 0;
        self.hide(key, hidden);
    }

    /// Only what the worker still runs, in that attempt, is returned.
    fn release(&mut self, worker: usize, tasks: &[(TaskKey, i32)]) -> Answer {
        let mut released = 0;
        for &(key, attempt) in tasks {
            let is_its = self
                .task(key)
                .is_some_and(|task| task.worker == Some(worker));
            if is_its && self.is_current(key, Some(attempt)) {
                self.task_mut(key).uncounted += 1;
                self.queue_again(key, Hidden::No);
                released += 1;
            }
        }
        Answer::Count(released)
    }

    fn is_stalled(&self, key: TaskKey) -> bool {
        let age = self.task(key).map_or(0, |task| task.age);
        self.is_running(key) && age > i64::from(self.flow.timeout(key.step)) + 30
    }

    /// Recovers tasks: those with attempts left are queued again, first, and so, once more, is a
    /// task whose worker ended at its last attempt; then the rest ends, in the order of locks.
    fn recover(&mut self, dead: Option<usize>) -> Answer {
        let is_lost = |task: &Task| dead.is_some() && task.worker == dead;
        let stalled = self.tasks().map(|(key, task)| (key, is_lost(task)));
        let stalled = stalled
            .filter(|&(key, is_lost)| self.is_stalled(key) || (is_lost && self.is_running(key)));
        let mut stalled: Vec<(TaskKey, bool)> = stalled.collect();
        stalled.sort_by_key(|(key, _)| {
            let slug = self.flow.steps[key.step].slug.clone();
            (self.runs[key.run].id, slug, key.index)
        });
        let mut requeued = 0;
        let mut used_up = Vec::new();
        for (key, is_lost) in stalled {
            let most = self.flow.max_attempts(key.step);
            let task = self.task_mut(key);
            let is_used_up = task.attempts - task.uncounted >= most;
            if is_used_up && (!is_lost || most == 1 || task.runs_alone) {
                used_up.push((key, is_lost && task.runs_alone));
                continue;
            }
            task.runs_alone |= is_used_up;
            task.requeues += 1;
            task.postponed = 0;
            task.is_postponed_too_long = false;
            requeued += 1;
            self.queue_again(key, Hidden::No);
        }
        for (key, is_culprit) in used_up {
            // An earlier one may have ended it.
            if self.is_running(key) {
                self.task_mut(key).is_permanently_stalled = true;
                let text = if is_culprit {
                    Text::Culprit {
                        step: self.flow.steps[key.step].slug.clone(),
                        index: key.index,
                    }
                } else {
                    Text::Stalled
                };
                self.exhaust(key, text);
            }
        }
        Answer::Count(requeued)
    }
}

/// Twice as long after each failure, and up to a quarter more at random; at most as long as the
/// cap, where it is up to a fifth less.
fn backoff(base_delay: i32, failures: i32) -> Hidden {
    if base_delay == 0 {
        return Hidden::No;
    }
    let mut delay = i64::from(base_delay);
    for _ in 0..failures {
        delay = (delay * 2).min(MAX_DELAY);
    }
    let least = if delay < MAX_DELAY {
        delay
    } else {
        MAX_DELAY * 4 / 5
    };
    Hidden::Between(least, (least * 5 / 4).min(MAX_DELAY))
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
