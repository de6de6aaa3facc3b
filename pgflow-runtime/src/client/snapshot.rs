//! The states of a run and of its steps at one moment.

use std::{fmt, marker::PhantomData};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{ClientError, hints::Sight};
use crate::flow::{AcceptsStep, DecodeError, Flow, Outputs, RunStatus, StepId, decode};

/// The status of a step in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StepStatus {
    /// Waits for its dependencies.
    Created,
    /// Has tasks that wait or run.
    Started,
    /// All its tasks completed, or, of a map step that does without elements that fail, some of
    /// them.
    Completed,
    /// It failed, and with it the run, unless it is an end step.
    Failed,
    /// It was skipped.
    Skipped,
}

/// The reason why a step was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// Its condition did not hold.
    ConditionUnmet,
    /// One of its tasks failed, and no attempt follows.
    HandlerFailed,
    /// A step that it depends on was skipped, with everything that depends on it.
    DependencySkipped,
}

/// A run of flow `F` and its steps, as they were at one moment.
pub struct RunSnapshot<F> {
    run: Run,
    steps: Vec<StepSnapshot>,
    flow: PhantomData<fn() -> F>,
}

#[derive(Debug, Clone, Deserialize)]
#[expect(
    clippy::struct_field_names,
    reason = "fields are named like their columns"
)]
struct Run {
    run_id: Uuid,
    flow_slug: String,
    status: RunStatus,
    output: Option<Box<RawValue>>,
    error_message: Option<String>,
    remaining_steps: i32,
    started_at: DateTime<Utc>,
    completed_at: Option<DateTime<Utc>>,
    failed_at: Option<DateTime<Utc>>,
}

/// A step of a run, as it was at one moment.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct StepSnapshot {
    /// The step's slug.
    pub step_slug: String,
    /// Its status.
    pub status: StepStatus,
    /// The number of its tasks; unknown for a map step whose source has not completed.
    pub initial_tasks: Option<i32>,
    /// The number of tasks that the step still waits for; none before the step starts, and of a
    /// skipped step.
    pub remaining_tasks: Option<i32>,
    /// The number of its failed tasks, if it is a map step that does without them
    /// (`on_element_failure = "null"`).
    #[serde(default)]
    pub failed_tasks: i32,
    /// The number of its dependencies that have neither completed nor been skipped.
    pub remaining_deps: i32,
    /// Its output; none until it has completed, and for JSON null.
    pub output: Option<Box<RawValue>>,
    /// The reason for its failure, or the message of the last attempt that caused its skip.
    pub error_message: Option<String>,
    /// The reason why it was skipped.
    pub skip_reason: Option<SkipReason>,
    /// The start of the run.
    pub created_at: DateTime<Utc>,
    /// The time at which its tasks were queued.
    pub started_at: Option<DateTime<Utc>>,
    /// The time of completion.
    pub completed_at: Option<DateTime<Utc>>,
    /// The time of the failure.
    pub failed_at: Option<DateTime<Utc>>,
    /// The time of the skip.
    pub skipped_at: Option<DateTime<Utc>>,
}

impl<F: Flow> RunSnapshot<F> {
    pub(super) fn read(run_id: Uuid, json: &RawValue) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct States {
            run: Run,
            steps: Vec<StepSnapshot>,
        }
        let States { run, steps } = decode(json).map_err(|misfit| ClientError::Unreadable {
            run_id,
            source: DecodeError::new("the states of the run", misfit),
        })?;
        if run.flow_slug != F::DEFINITION.slug {
            return Err(ClientError::OtherFlow {
                run_id,
                expected: F::DEFINITION.slug,
                actual: run.flow_slug,
            });
        }
        Ok(Self {
            run,
            steps,
            flow: PhantomData,
        })
    }

    /// The same numbers as those that show a change: see `sql::watch`.
    pub(super) fn sight(&self) -> Sight {
        let phase = |step: &StepSnapshot| match step.status {
            StepStatus::Created => 0,
            StepStatus::Started => 1,
            StepStatus::Completed | StepStatus::Failed | StepStatus::Skipped => 2,
        };
        let remaining = |step: &StepSnapshot| step.remaining_tasks.map_or(0, i64::from);
        Sight::Run {
            is_ended: self.run.status != RunStatus::Started,
            phases: self.steps.iter().map(phase).sum(),
            remaining: self.steps.iter().map(remaining).sum(),
        }
    }

    /// The run's id.
    pub fn run_id(&self) -> Uuid {
        self.run.run_id
    }

    /// The run's status.
    pub fn status(&self) -> RunStatus {
        self.run.status
    }

    /// Returns the reason why the run failed.
    pub fn error_message(&self) -> Option<&str> {
        self.run.error_message.as_deref()
    }

    /// Returns the number of steps that have neither completed nor been skipped.
    pub fn remaining_steps(&self) -> i32 {
        self.run.remaining_steps
    }

    /// Returns the start of the run.
    pub fn started_at(&self) -> DateTime<Utc> {
        self.run.started_at
    }

    /// Returns the time at which the run completed or failed.
    pub fn ended_at(&self) -> Option<DateTime<Utc>> {
        self.run.completed_at.or(self.run.failed_at)
    }

    /// The run's output, once it has completed.
    ///
    /// # Errors
    ///
    /// When the output does not have the type that this build expects.
    pub fn output(&self) -> Result<Option<F::Output>, DecodeError> {
        if self.run.status != RunStatus::Completed {
            return Ok(None);
        }
        let json = self.run.output.as_deref().unwrap_or(RawValue::NULL);
        let outputs = Outputs::new(json)?;
        F::__output(&outputs).map(Some)
    }

    /// The steps, in the order of the definition; an end step is among them from its start on.
    pub fn steps(&self) -> &[StepSnapshot] {
        &self.steps
    }

    /// One step; none for an end step that has not started, and when the database holds another
    /// definition of the flow than this build.
    ///
    /// The step is an `F::Step`.
    pub fn step<S>(&self, step: S) -> Option<&StepSnapshot>
    where
        F::Step: AcceptsStep<S, F>,
    {
        let step = F::Step::accept(step);
        self.steps
            .iter()
            .find(|state| state.step_slug == step.slug())
    }

    /// Returns the progress of one step; none before it starts, and of a skipped step.
    ///
    /// The step is an `F::Step`.
    pub fn tasks<S>(&self, step: S) -> Option<TaskCounts>
    where
        F::Step: AcceptsStep<S, F>,
    {
        self.step(step).and_then(StepSnapshot::tasks)
    }
}

/// The tasks of a step, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskCounts {
    /// The number of all tasks.
    pub total: u64,
    /// The number of completed tasks.
    pub completed: u64,
    /// The number of failed tasks of a map step that does without them (`on_element_failure =
    /// "null"`).
    pub failed: u64,
}

impl StepSnapshot {
    /// Returns the progress of the step; none before it starts, and of a skipped step.
    pub fn tasks(&self) -> Option<TaskCounts> {
        let total = u64::try_from(self.initial_tasks?).ok()?;
        let remaining = u64::try_from(self.remaining_tasks?).ok()?;
        let failed = u64::try_from(self.failed_tasks).ok()?;
        Some(TaskCounts {
            total,
            completed: total.saturating_sub(remaining + failed),
            failed,
        })
    }
}

impl<F> Clone for RunSnapshot<F> {
    fn clone(&self) -> Self {
        Self {
            run: self.run.clone(),
            steps: self.steps.clone(),
            flow: PhantomData,
        }
    }
}

impl<F> fmt::Debug for RunSnapshot<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Outputs may be large.
        let steps = self.steps.iter().map(|step| (&step.step_slug, step.status));
        f.debug_struct("RunSnapshot")
            .field("run_id", &self.run.run_id)
            .field("status", &self.run.status)
            .field("steps", &steps.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
