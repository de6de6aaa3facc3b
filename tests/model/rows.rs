//! Rows as they are in the database. Times are microseconds.

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// A JSON value, in an array of one: JSON's null is not SQL's.
pub(crate) type Stored = Option<(Value,)>;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct RunRow {
    pub(crate) run_id: Uuid,
    pub(crate) status: String,
    pub(crate) remaining_steps: i64,
    pub(crate) input: Stored,
    pub(crate) output: Stored,
    pub(crate) error: Option<String>,
    pub(crate) started_at: i64,
    pub(crate) completed_at: Option<i64>,
    pub(crate) failed_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct StepRow {
    pub(crate) run_id: Uuid,
    pub(crate) slug: String,
    pub(crate) status: String,
    pub(crate) initial_tasks: Option<i64>,
    pub(crate) remaining_tasks: Option<i64>,
    pub(crate) failed_tasks: i64,
    pub(crate) remaining_deps: i64,
    pub(crate) output: Stored,
    pub(crate) error: Option<String>,
    pub(crate) skip_reason: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) completed_at: Option<i64>,
    pub(crate) failed_at: Option<i64>,
    pub(crate) skipped_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct TaskRow {
    pub(crate) run_id: Uuid,
    pub(crate) slug: String,
    pub(crate) index: usize,
    pub(crate) status: String,
    pub(crate) attempts: i32,
    pub(crate) uncounted: i32,
    pub(crate) postponed: i32,
    pub(crate) runs_alone: bool,
    pub(crate) requeues: i32,
    pub(crate) is_permanently_stalled: bool,
    pub(crate) queue: String,
    pub(crate) message: Option<i64>,
    pub(crate) element: Stored,
    pub(crate) output: Stored,
    pub(crate) error: Option<String>,
    pub(crate) worker: Option<Uuid>,
    pub(crate) queued_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) completed_at: Option<i64>,
    pub(crate) failed_at: Option<i64>,
}

/// A message that is in a queue.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct MessageRow {
    pub(crate) queue: usize,
    pub(crate) id: i64,
    pub(crate) reads: i32,
    pub(crate) visible_at: i64,
}

/// An event that was sent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct EventRow {
    pub(crate) n: i64,
    pub(crate) name: String,
    pub(crate) topic: String,
    pub(crate) is_private: bool,
    pub(crate) payload: Value,
}

impl RunRow {
    pub(crate) fn has_ended(&self) -> bool {
        self.status != "started"
    }
}

impl StepRow {
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(self.status.as_str(), "created" | "started")
    }

    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "skipped")
    }

    pub(crate) fn ended_at(&self) -> Option<i64> {
        self.completed_at.or(self.failed_at).or(self.skipped_at)
    }
}

impl TaskRow {
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.status.as_str(), "queued" | "started")
    }
}
