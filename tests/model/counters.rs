//! What the counters must say, by counting.

use super::state::{Model, RunStatus, StepStatus, TaskStatus};

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

    /// How many tasks a step has; unknown while the source of a map is not settled. A skipped source is an empty array.
    pub(crate) fn initial_tasks(&self, run: usize, step: usize) -> Option<usize> {
        self.elements(run, step)
            .map(|elements| elements.map_or(1, |elements| elements.len()))
    }

    /// What the tasks of a step run over: `None` while it is unknown, `Some(None)` for a single step.
    pub(crate) fn elements(&self, run: usize, step: usize) -> Option<Option<&[serde_json::Value]>> {
        let definition = &self.flow.steps[step];
        if !definition.is_map {
            return Some(None);
        }
        let run = &self.runs[run];
        let source = match definition.deps.first() {
            None => Some(&run.input),
            Some(&dep) if run.steps[dep].is_settled() => run.steps[dep].output.as_ref(),
            Some(_) => return None,
        };
        let elements = source.map_or(&[][..], |source| {
            source.as_array().expect("a map runs over an array")
        });
        Some(Some(elements))
    }

    /// Tasks that are not completed, of a step that has started and was not skipped.
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
                .filter(|task| task.status != TaskStatus::Completed)
                .count()
        })
    }

    /// Whether nothing is left to do.
    pub(crate) fn has_ended(&self) -> bool {
        self.runs.iter().all(|run| run.status != RunStatus::Started)
    }
}
