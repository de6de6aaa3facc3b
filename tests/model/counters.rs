//! The required values of the counters, by counting.

use serde_json::Value;

use super::state::{Model, RunStatus, StepStatus, TaskStatus};

/// The elements of a step's tasks.
pub(crate) enum Elements<'a> {
    /// The source of a map is not settled.
    Unknown,
    /// A single step takes all there is.
    Whole,
    Each(&'a [Value]),
}

impl Model {
    pub(crate) fn remaining_steps(&self, run: usize) -> usize {
        let steps = self.runs[run].steps.iter();
        steps.filter(|step| !step.is_settled()).count()
    }

    pub(crate) fn remaining_deps(&self, run: usize, step: usize) -> usize {
        let deps = self.flow.steps[step].deps.iter();
        deps.filter(|&&dep| !self.runs[run].steps[dep].is_settled())
            .count()
    }

    /// Returns the number of tasks of a step; unknown while the source of a map is not settled.
    pub(crate) fn initial_tasks(&self, run: usize, step: usize) -> Option<usize> {
        match self.elements(run, step) {
            Elements::Unknown => None,
            Elements::Whole => Some(1),
            Elements::Each(elements) => Some(elements.len()),
        }
    }

    /// A skipped source is an empty array.
    pub(crate) fn elements(&self, run: usize, step: usize) -> Elements<'_> {
        let definition = &self.flow.steps[step];
        if !definition.is_map {
            return Elements::Whole;
        }
        let run = &self.runs[run];
        let source = match definition.deps.first() {
            None => Some(&run.input),
            Some(&dep) if run.steps[dep].is_settled() => run.steps[dep].output.as_ref(),
            Some(_) => return Elements::Unknown,
        };
        let elements = source.map_or(&[][..], |source| {
            source.as_array().expect("a map runs over an array")
        });
        Elements::Each(elements)
    }

    /// Returns `true` if a step does without a task that failed.
    fn does_without(&self, step: usize, status: TaskStatus) -> bool {
        self.flow.steps[step].is_tolerant && status == TaskStatus::Failed
    }

    /// Elements that failed without their step.
    pub(crate) fn failed_tasks(&self, run: usize, step: usize) -> usize {
        let tasks = self.runs[run].steps[step].tasks.iter();
        tasks
            .filter(|task| self.does_without(step, task.status))
            .count()
    }

    /// Tasks that a step waits for, if it has started and was not skipped.
    pub(crate) fn remaining_tasks(&self, run: usize, step: usize) -> Option<usize> {
        let state = &self.runs[run].steps[step];
        let has_started = match state.status {
            StepStatus::Created | StepStatus::Skipped => false,
            StepStatus::Started | StepStatus::Completed => true,
            // By its condition: it had no tasks yet.
            StepStatus::Failed => !state.tasks.is_empty(),
        };
        has_started.then(|| {
            let tasks = state.tasks.iter();
            tasks
                .filter(|task| {
                    task.status != TaskStatus::Completed && !self.does_without(step, task.status)
                })
                .count()
        })
    }

    /// Returns whether nothing is left to do.
    pub(crate) fn has_ended(&self) -> bool {
        self.runs.iter().all(|run| run.status != RunStatus::Started)
    }
}
