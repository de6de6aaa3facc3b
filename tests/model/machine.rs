//! The state machines of the design: how runs continue without a worker, and how work ends.
//!
//! Where the design leaves an order open, these hold: conditions are decided until none is left to
//! decide, then every empty map completes, and so on; steps with tasks start last.

use serde_json::{Map, Value, json};

use super::call::TaskKey;
use super::containment::contains;
use super::counters::Elements;
use super::flow::Mode;
use super::state::{Event, Hidden, Message, Model, RunStatus, StepStatus, Task, TaskStatus, Text};

impl Model {
    pub(crate) fn task(&self, key: TaskKey) -> Option<&Task> {
        let step = self.runs.get(key.run)?.steps.get(key.step)?;
        step.tasks.get(key.index)
    }

    pub(crate) fn task_mut(&mut self, key: TaskKey) -> &mut Task {
        &mut self.runs[key.run].steps[key.step].tasks[key.index]
    }

    /// All tasks, by run, step and index.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (TaskKey, &Task)> {
        self.runs.iter().enumerate().flat_map(|(run, state)| {
            state
                .steps
                .iter()
                .enumerate()
                .flat_map(move |(step, state)| {
                    let tasks = state.tasks.iter().enumerate();
                    tasks.map(move |(index, task)| (TaskKey { run, step, index }, task))
                })
        })
    }

    /// Decides when a task's message can be read next.
    pub(crate) fn hide(&mut self, key: TaskKey, hidden: Hidden) {
        let call = self.call;
        let message = &mut self.task_mut(key).message;
        message.hidden = hidden;
        message.decided_in = call;
    }

    /// Ends a task; its message goes to the archive.
    pub(crate) fn end_task(&mut self, key: TaskKey, status: TaskStatus) {
        let task = self.task_mut(key);
        task.status = status;
        task.worker = None;
        task.message.is_archived = true;
    }

    fn end_active_tasks(&mut self, run: usize, step: usize, status: TaskStatus) {
        for index in 0..self.runs[run].steps[step].tasks.len() {
            let key = TaskKey { run, step, index };
            if self.task_mut(key).is_active() {
                self.end_task(key, status);
            }
        }
    }

    pub(crate) fn emit(&mut self, kind: &'static str, run: usize, step: Option<usize>) {
        let state = &self.runs[run];
        let event = match step {
            None => Event {
                kind,
                run,
                step,
                status: state.status.name().to_owned(),
                input: (kind == "run:started").then(|| state.input.clone()),
                output: state.output.clone(),
                error: state.error.clone(),
                skip_reason: None,
            },
            Some(place) => {
                let state = &state.steps[place];
                Event {
                    kind,
                    run,
                    step,
                    status: state.status.name().to_owned(),
                    input: None,
                    output: state.output.clone(),
                    error: state.error.clone(),
                    skip_reason: state.skip_reason,
                }
            }
        };
        self.events.push(event);
    }

    /// Goes on until a worker is needed or the run has ended. Returns whether tasks were queued.
    pub(crate) fn advance(&mut self, run: usize) -> bool {
        while self.resolve_conditions(run) || self.complete_empty_maps(run) {}
        let started = self.start_ready_steps(run);
        self.finish(run);
        started
    }

    /// The steps that wait for nothing any more, in the order of the definition.
    fn ready(&self, run: usize) -> Vec<usize> {
        if self.runs[run].status != RunStatus::Started {
            return Vec::new();
        }
        let steps = 0..self.flow.steps.len();
        steps
            .filter(|&step| {
                self.runs[run].steps[step].status == StepStatus::Created
                    && self.remaining_deps(run, step) == 0
            })
            .collect()
    }

    /// The outputs of a step's completed dependencies.
    pub(crate) fn dependency_outputs(&self, run: usize, step: usize) -> Value {
        let steps = &self.runs[run].steps;
        let mut outputs = Map::new();
        for &dep in &self.flow.steps[step].deps {
            if steps[dep].status == StepStatus::Completed {
                let output = steps[dep].output.clone();
                outputs.insert(
                    self.flow.steps[dep].slug.clone(),
                    output.expect("a completed step has an output"),
                );
            }
        }
        outputs.into()
    }

    fn meets_condition(&self, run: usize, step: usize) -> bool {
        let definition = &self.flow.steps[step];
        let subject = if definition.deps.is_empty() {
            self.runs[run].input.clone()
        } else {
            self.dependency_outputs(run, step)
        };
        let holds = |pattern: &Value| contains(&subject, pattern);
        definition.required.as_ref().is_none_or(holds)
            && !definition.forbidden.as_ref().is_some_and(holds)
    }

    /// Decides the conditions of the ready steps: an unmet `fail` wins, the lowest step first.
    /// Returns whether any was unmet.
    fn resolve_conditions(&mut self, run: usize) -> bool {
        let mut unmet = self.ready(run);
        unmet.retain(|&step| !self.meets_condition(run, step));
        let fails = |step: &&usize| self.flow.steps[**step].when_unmet == Mode::Fail;
        if let Some(&culprit) = unmet.iter().find(fails) {
            self.fail_run(run, culprit, Text::Is("Condition not met".to_owned()));
            return true;
        }
        for &step in &unmet {
            let cascade = self.flow.steps[step].when_unmet == Mode::SkipCascade;
            self.skip(run, step, "condition_unmet", None, cascade);
        }
        !unmet.is_empty()
    }

    fn complete_empty_maps(&mut self, run: usize) -> bool {
        let mut empty = self.ready(run);
        empty.retain(|&step| self.initial_tasks(run, step) == Some(0));
        for &step in &empty {
            self.complete_step(run, step, json!([]));
        }
        !empty.is_empty()
    }

    pub(crate) fn complete_step(&mut self, run: usize, step: usize, output: Value) {
        let state = &mut self.runs[run].steps[step];
        state.status = StepStatus::Completed;
        state.output = Some(output);
        self.emit("step:completed", run, Some(step));
    }

    fn start_ready_steps(&mut self, run: usize) -> bool {
        let ready = self.ready(run);
        for &step in &ready {
            let elements: Vec<Option<Value>> = match self.elements(run, step) {
                Elements::Unknown => unreachable!("the source of a ready map is settled"),
                Elements::Whole => vec![None],
                Elements::Each(elements) => elements.iter().cloned().map(Some).collect(),
            };
            let delay = self.flow.steps[step].start_delay.unwrap_or(0);
            let message = Message {
                queue: self.flow.queue(step),
                id: None,
                is_archived: false,
                reads: 0,
                hidden: hidden_for(i64::from(delay)),
                decided_in: self.call,
            };
            let tasks = elements.into_iter().map(|element| Task {
                status: TaskStatus::Queued,
                attempts: 0,
                uncounted: 0,
                postponed: 0,
                is_postponed_too_long: false,
                runs_alone: false,
                requeues: 0,
                is_permanently_stalled: false,
                element,
                output: None,
                error: None,
                worker: None,
                age: 0,
                message: message.clone(),
            });
            let tasks = tasks.collect();
            let state = &mut self.runs[run].steps[step];
            state.status = StepStatus::Started;
            state.tasks = tasks;
            self.emit("step:started", run, Some(step));
        }
        !ready.is_empty()
    }

    /// Completes a run that has nothing left: its output is that of its completed leaves.
    fn finish(&mut self, run: usize) {
        if self.runs[run].status != RunStatus::Started || self.remaining_steps(run) > 0 {
            return;
        }
        let mut outputs = Map::new();
        for (place, step) in self.flow.steps.iter().enumerate() {
            let is_leaf = self.flow.dependents(place).next().is_none();
            let output = self.runs[run].steps[place].output.clone();
            if let Some(output) = output.filter(|_| is_leaf) {
                outputs.insert(step.slug.clone(), output);
            }
        }
        let state = &mut self.runs[run];
        state.status = RunStatus::Completed;
        state.output = (!outputs.is_empty()).then(|| outputs.into());
        self.emit("run:completed", run, None);
    }

    /// Skips a step, and with `cascade` all that depends on it, however indirectly.
    pub(crate) fn skip(
        &mut self,
        run: usize,
        step: usize,
        reason: &'static str,
        error: Option<Text>,
        cascade: bool,
    ) {
        let state = &mut self.runs[run].steps[step];
        state.status = StepStatus::Skipped;
        state.skip_reason = Some(reason);
        state.error = error;
        self.end_active_tasks(run, step, TaskStatus::Skipped);
        self.emit("step:skipped", run, Some(step));
        let dependents: Vec<usize> = self.flow.dependents(step).filter(|_| cascade).collect();
        for dependent in dependents {
            if self.runs[run].steps[dependent].status == StepStatus::Created {
                self.skip(run, dependent, "dependency_skipped", None, true);
            }
        }
    }

    /// Fails a run because of a step; a task that is to blame has failed before.
    pub(crate) fn fail_run(&mut self, run: usize, culprit: usize, error: Text) {
        let state = &mut self.runs[run];
        state.steps[culprit].status = StepStatus::Failed;
        state.steps[culprit].error = Some(error.clone());
        state.status = RunStatus::Failed;
        state.error = Some(error);
        for step in 0..self.flow.steps.len() {
            self.end_active_tasks(run, step, TaskStatus::Cancelled);
        }
        self.emit("step:failed", run, Some(culprit));
        self.emit("run:failed", run, None);
    }

    /// A started task has no attempt left: its step's `when_exhausted` decides.
    pub(crate) fn exhaust(&mut self, key: TaskKey, error: Text) {
        let TaskKey { run, step, .. } = key;
        self.task_mut(key).error = Some(error.clone());
        self.end_task(key, TaskStatus::Failed);
        let Some(error) = self.fail_element(key, error) else {
            return;
        };
        match self.flow.steps[step].when_exhausted {
            Mode::Fail => self.fail_run(run, step, error),
            mode => {
                let cascade = mode == Mode::SkipCascade;
                self.skip(run, step, "handler_failed", Some(error), cascade);
                self.advance(run);
            }
        }
    }
}

impl Model {
    /// Applies the failure of a task. A map that does without failed elements continues while it
    /// waits for others, then ends; if all failed, it fails with an error of its own. The failure
    /// of a task of any other step is that of the step.
    fn fail_element(&mut self, key: TaskKey, error: Text) -> Option<Text> {
        let TaskKey { run, step, index } = key;
        if !self.flow.steps[step].is_tolerant {
            return Some(error);
        }
        if self.remaining_tasks(run, step) != Some(0) {
            return None;
        }
        let count = self.runs[run].steps[step].tasks.len();
        if self.failed_tasks(run, step) == count {
            return Some(Text::AllElements {
                count,
                last: index,
                error: Box::new(error),
            });
        }
        let output = self.output_of_tasks(run, step);
        self.complete_step(run, step, output);
        self.advance(run);
        None
    }
}

pub(crate) fn hidden_for(seconds: i64) -> Hidden {
    if seconds == 0 {
        Hidden::No
    } else {
        Hidden::Seconds(seconds)
    }
}
