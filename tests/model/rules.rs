//! The calls, as the design describes them, on the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uuid::Uuid;

use super::call::{Answer, Call, ClaimedRow, Completion, Failure, TaskKey};
use super::flow::Flow;
use super::machine::hidden_for;
use super::state::{Event, Hidden, Model, Run, RunStatus, StepState, StepStatus, TaskStatus, Text};

/// The error codes of calls that are refused.
const UNKNOWN_TASK: &str = "PF003";
const INVALID_INPUT: &str = "PF005";
const INVALID_ARGUMENT: &str = "PF009";

/// How often a task may stall before it counts as out of attempts.
const MAX_REQUEUES: i32 = 3;

impl Model {
    pub(crate) fn new(flow: Flow) -> Self {
        Self {
            flow,
            runs: Vec::new(),
            events: Vec::new(),
            call: 0,
        }
    }

    /// Does a call. `next_run` is the id of the run that the next start makes. Returns the answer and the events.
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
            Call::Recover => self.recover(),
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

    /// Whether a task, its step and its run are running.
    fn is_running(&self, key: TaskKey) -> bool {
        let run = &self.runs[key.run];
        let step = &run.steps[key.step];
        run.status == RunStatus::Started
            && step.status == StepStatus::Started
            && step.tasks[key.index].status == TaskStatus::Started
    }

    /// Whether a report speaks for the attempt that is running.
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

    /// Takes the messages of the worker's queue that have been visible for longest.
    fn claim(&mut self, worker: usize, max: usize) -> Answer {
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
        let mut rows = Vec::new();
        for (_, id, key) in visible.into_iter().take(max) {
            let timeout = self.flow.timeout(key.step);
            self.task_mut(key).message.reads += 1;
            if self.is_running(key) {
                // It runs elsewhere: no attempt is counted.
                let is_stalled = self.is_stalled(key);
                let hidden = if is_stalled {
                    Hidden::Briefly
                } else {
                    Hidden::UntilRecovery
                };
                self.hide(key, hidden);
                continue;
            }
            let task = self.task_mut(key);
            task.status = TaskStatus::Started;
            task.attempts += 1;
            task.worker = Some(worker);
            task.age = 0;
            self.hide(key, Hidden::Seconds(i64::from(timeout) + 2));
            rows.push(self.claimed(key, worker, id));
        }
        // They return in the order in which they were sent.
        rows.sort_unstable_by_key(|row| row.message);
        Answer::Claimed(rows)
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
            max_attempts: self.flow.max_attempts(key.step),
            timeout: self.flow.timeout(key.step),
            queue: task.message.queue,
            message,
            reads: task.message.reads,
            input,
            flow_input: (gets_flow_input && worker % 2 == 1).then(|| run.input.clone()),
        }
    }

    /// A batch is all or nothing. A type violation fails its run before anything else of that run completes; what does complete,
    /// completes before any run goes on.
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

    fn output_of_tasks(&self, run: usize, step: usize) -> Value {
        let tasks = self.runs[run].steps[step].tasks.iter();
        let mut outputs = tasks.map(|task| task.output.clone().expect("a completed task's"));
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
        let attempts = task.attempts;
        if self.is_current(key, failure.attempt) {
            let error = Text::Is(failure.message.clone());
            if failure.retryable && attempts < self.flow.max_attempts(key.step) {
                let delay = failure.retry_delay.map_or_else(
                    || backoff(self.flow.base_delay(key.step), attempts),
                    i64::from,
                );
                self.task_mut(key).error = Some(error);
                self.queue_again(key, hidden_for(delay));
            } else {
                self.exhaust(key, error);
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

    /// Only what the worker still runs, in that attempt, is given back.
    fn release(&mut self, worker: usize, tasks: &[(TaskKey, i32)]) -> Answer {
        let mut released = 0;
        for &(key, attempt) in tasks {
            let is_its = self
                .task(key)
                .is_some_and(|task| task.worker == Some(worker));
            if is_its && self.is_current(key, Some(attempt)) {
                self.task_mut(key).attempts -= 1;
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

    /// What may be queued again is, first; then what stalled too often ends, in the order of locks.
    fn recover(&mut self) -> Answer {
        let stalled = self.tasks().map(|(key, _)| key);
        let mut stalled: Vec<TaskKey> = stalled.filter(|&key| self.is_stalled(key)).collect();
        stalled.sort_by_key(|key| {
            let slug = self.flow.steps[key.step].slug.clone();
            (self.runs[key.run].id, slug, key.index)
        });
        let (out_of_requeues, requeued): (Vec<TaskKey>, Vec<TaskKey>) = stalled
            .into_iter()
            .partition(|&key| self.task_mut(key).requeues >= MAX_REQUEUES);
        for &key in &requeued {
            self.task_mut(key).requeues += 1;
            self.queue_again(key, Hidden::No);
        }
        for key in out_of_requeues {
            // An earlier one may have ended it.
            if self.is_running(key) {
                self.task_mut(key).is_permanently_stalled = true;
                self.exhaust(key, Text::Stalled);
            }
        }
        Answer::Count(i32::try_from(requeued.len()).expect("a few"))
    }
}

/// Twice as long after each attempt, at most a day.
fn backoff(base_delay: i32, attempts: i32) -> i64 {
    let mut delay = i64::from(base_delay);
    for _ in 0..attempts {
        delay = (delay * 2).min(86_400);
    }
    delay
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
