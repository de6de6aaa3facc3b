//! The report of a run, task by task and attempt by attempt.

use std::{fmt, time::Duration};

use uuid::Uuid;

use crate::{
    client::{RunError, RunSnapshot},
    flow::{Flow, StepId},
};

/// A run that has ended, its end steps included, with all that was attempted for it.
pub struct EndedRun<F: Flow> {
    pub(super) result: Result<F::Output, RunError>,
    pub(super) tasks: Vec<TaskReport>,
    pub(super) snapshot: RunSnapshot<F>,
}

impl<F: Flow> EndedRun<F> {
    /// The run's id.
    pub fn run_id(&self) -> Uuid {
        self.snapshot.run_id()
    }

    /// Returns the output of the run; none when it failed.
    pub fn output(&self) -> Option<&F::Output> {
        self.result.as_ref().ok()
    }

    /// Returns the reason why the run failed; none when it completed.
    pub fn error(&self) -> Option<&RunError> {
        self.result.as_ref().err()
    }

    /// Returns the result of [`RunHandle::wait`](crate::client::RunHandle::wait) for this run.
    pub fn into_output(self) -> Result<F::Output, RunError> {
        self.result
    }

    /// The states of the run and its steps.
    pub fn snapshot(&self) -> &RunSnapshot<F> {
        &self.snapshot
    }

    /// Every task, in the order of the steps and of the elements. A step that was skipped before it
    /// started has none, and so has an end step for another end.
    pub fn tasks(&self) -> &[TaskReport] {
        &self.tasks
    }

    /// The tasks of one step.
    pub fn tasks_of(&self, step: F::Step) -> &[TaskReport] {
        let first = self.tasks.partition_point(|task| task.step < step.index());
        let end = self.tasks.partition_point(|task| task.step <= step.index());
        &self.tasks[first..end]
    }

    /// One task of a step: the only one of a single step is 0.
    pub fn task(&self, step: F::Step, index: usize) -> Option<&TaskReport> {
        self.tasks_of(step).get(index)
    }
}

impl<F: Flow> fmt::Debug for EndedRun<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Outputs may be large, and need not be `Debug`.
        f.debug_struct("EndedRun")
            .field("snapshot", &self.snapshot)
            .field("error", &self.error())
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}

/// One task of an ended run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskReport {
    pub(super) step: usize,
    /// The step's slug.
    pub step_slug: &'static str,
    /// The element's position in the mapped list; 0 for a single step.
    pub task_index: i32,
    /// The end of the task.
    pub status: TaskStatus,
    /// The stored error of its last failed attempt.
    pub error_message: Option<String>,
    /// Its attempts, in their order.
    pub attempts: Vec<AttemptReport>,
}

impl TaskReport {
    /// The messages of the attempts that failed.
    pub fn errors(&self) -> Vec<&str> {
        self.attempts
            .iter()
            .filter_map(|attempt| match &attempt.outcome {
                AttemptOutcome::Failed { message, .. } => Some(message.as_str()),
                AttemptOutcome::Returned
                | AttemptOutcome::Postponed { .. }
                | AttemptOutcome::Dropped => None,
            })
            .collect()
    }
}

/// The end of a task, with its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskStatus {
    /// Its output is recorded.
    Completed,
    /// Its last attempt failed, or its output is not the list that a map step needs.
    Failed,
    /// It had not ended when its step was skipped.
    Skipped,
    /// It had not ended when the run failed.
    Cancelled,
}

impl TaskStatus {
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "skipped" => Some(Self::Skipped),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// One attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptReport {
    /// Its number, counted from 1.
    pub attempt: i32,
    /// The outcome of the attempt.
    pub outcome: AttemptOutcome,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// The handler returned an output.
    Returned,
    /// The handler returned an error, panicked or took too long, or its output can't be stored.
    Failed {
        /// The message that was reported.
        message: String,
        /// The delay before the next attempt that the handler asked for, in whole seconds: not
        /// waited for here.
        retry_after: Option<Duration>,
        /// `true` if further attempts were ruled out.
        is_permanent: bool,
    },
    /// The handler postponed its task: the attempt does not count.
    Postponed {
        /// The message that was reported.
        message: String,
        /// The time that the handler asked for: not waited for here.
        after: Duration,
    },
    /// The run ended before the handler did, which was dropped.
    Dropped,
}
