//! The events of a run.

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use crate::{
    client::{SkipReason, TaskCounts},
    flow::StepId,
};

/// An event of a run, from [`RunEvents`](super::RunEvents); a step is an `F::Step`. Every time `at`
/// comes from the database's clock.
///
/// Each happens at most once in a run, except [`StepProgressed`](Self::StepProgressed). The end of
/// the run is the last one, so there is none of a step with `on = failure` or `on = end`:
/// [`RunHandle::snapshot`](crate::client::RunHandle::snapshot) shows its state.
///
/// # As JSON
///
/// An event serialises to one flat object, so that a page can be sent what happens as it is. Keys
/// that an event does not have are absent. Later releases may add types and keys; they change and
/// remove none.
///
/// | `type` | other keys |
/// |---|---|
/// | `run_started` | `at` |
/// | `step_started` | `step`, `tasks`, `at` |
/// | `step_progressed` | `step`, `completed`, `failed` (where elements failed), `tasks` |
/// | `step_completed` | `step`, `tasks`, `at` |
/// | `step_failed` | `step`, `message`, `at` |
/// | `step_skipped` | `step`, `reason`, `message` (where an attempt failed), `at` |
/// | `run_completed` | `at` |
/// | `run_failed` | `step` (where one failed it), `message`, `at` |
///
/// `step` is the step's slug, `at` an RFC 3339 time in UTC, `tasks`, `completed` and `failed` are
/// numbers, `reason` is `condition_unmet`, `handler_failed` or `dependency_skipped`. Messages are
/// those of the handlers' errors: leave them out where the reader may not see them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEvent<S> {
    /// The run was started. Always the first one.
    #[non_exhaustive]
    RunStarted {
        /// The time of the start.
        at: DateTime<Utc>,
    },
    /// All that the step depends on has ended, and its tasks were queued. Comes before any other
    /// event of the step; a step that never starts, because its condition did not hold or another
    /// step was skipped, has none.
    #[non_exhaustive]
    StepStarted {
        /// The step.
        step: S,
        /// The number of its tasks: one, or one for each element of a map step's list.
        tasks: u64,
        /// The time of the start.
        at: DateTime<Utc>,
    },
    /// More of the step's tasks have completed, or failed without the step, and not yet all of
    /// them. The counts only grow. One event may stand for many tasks, and a step whose tasks all
    /// ended between two looks has none.
    #[non_exhaustive]
    StepProgressed {
        /// The step: a map step, as others have one task.
        step: S,
        /// The numbers of its completed, failed and total tasks.
        tasks: TaskCounts,
    },
    /// All tasks of the step completed, or, of a map step that does without elements that fail,
    /// some of them.
    #[non_exhaustive]
    StepCompleted {
        /// The step.
        step: S,
        /// The number of its tasks.
        tasks: u64,
        /// The time of completion.
        at: DateTime<Utc>,
    },
    /// The step failed the run: [`RunFailed`](Self::RunFailed) follows.
    #[non_exhaustive]
    StepFailed {
        /// The step.
        step: S,
        /// The reason: the message of its last attempt, or that its condition was not met.
        message: String,
        /// The time of the failure.
        at: DateTime<Utc>,
    },
    /// The step was skipped.
    #[non_exhaustive]
    StepSkipped {
        /// The step.
        step: S,
        /// The reason.
        reason: SkipReason,
        /// The message of the last attempt of a task, if that is the reason.
        message: Option<String>,
        /// The time of the skip.
        at: DateTime<Utc>,
    },
    /// Every step completed or was skipped. Always the last one;
    /// [`wait`](crate::client::RunHandle::wait) has the output then, at once.
    #[non_exhaustive]
    RunCompleted {
        /// The time of completion.
        at: DateTime<Utc>,
    },
    /// A step failed the run. Always the last one. Steps that had not ended by then have no end of
    /// their own.
    #[non_exhaustive]
    RunFailed {
        /// The step that failed it.
        step: Option<S>,
        /// The message of that step.
        message: String,
        /// The time of the failure.
        at: DateTime<Utc>,
    },
}

impl<S: Copy> RunEvent<S> {
    /// The step that this is about; none for an event of the run, except of a failed one.
    pub fn step(&self) -> Option<S> {
        match *self {
            Self::StepStarted { step, .. }
            | Self::StepProgressed { step, .. }
            | Self::StepCompleted { step, .. }
            | Self::StepFailed { step, .. }
            | Self::StepSkipped { step, .. } => Some(step),
            Self::RunFailed { step, .. } => step,
            Self::RunStarted { .. } | Self::RunCompleted { .. } => None,
        }
    }

    /// Returns whether the run has ended with this: nothing follows.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::RunCompleted { .. } | Self::RunFailed { .. })
    }
}

/// The documented form.
#[derive(Default, Serialize)]
struct Form<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<SkipReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<DateTime<Utc>>,
}

impl<S: StepId> Serialize for RunEvent<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let form = Form {
            step: self.step().map(StepId::slug),
            ..Form::default()
        };
        let form = match self {
            Self::RunStarted { at } => Form {
                r#type: "run_started",
                at: Some(*at),
                ..form
            },
            Self::StepStarted { tasks, at, .. } => Form {
                r#type: "step_started",
                tasks: Some(*tasks),
                at: Some(*at),
                ..form
            },
            Self::StepProgressed { tasks, .. } => Form {
                r#type: "step_progressed",
                completed: Some(tasks.completed),
                failed: Some(tasks.failed).filter(|&failed| failed > 0),
                tasks: Some(tasks.total),
                ..form
            },
            Self::StepCompleted { tasks, at, .. } => Form {
                r#type: "step_completed",
                tasks: Some(*tasks),
                at: Some(*at),
                ..form
            },
            Self::StepFailed { message, at, .. } => Form {
                r#type: "step_failed",
                message: Some(message),
                at: Some(*at),
                ..form
            },
            Self::StepSkipped {
                reason,
                message,
                at,
                ..
            } => Form {
                r#type: "step_skipped",
                reason: Some(*reason),
                message: message.as_deref(),
                at: Some(*at),
                ..form
            },
            Self::RunCompleted { at } => Form {
                r#type: "run_completed",
                at: Some(*at),
                ..form
            },
            Self::RunFailed { message, at, .. } => Form {
                r#type: "run_failed",
                message: Some(message),
                at: Some(*at),
                ..form
            },
        };
        form.serialize(serializer)
    }
}
