//! Looks at runs of any flow, and starts them, without the flow's types: for command lines and dashboards.
//!
//! Programs that know their flows use [`client`](crate::client).

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::sql::{self, CallError};

/// Which runs to list.
#[derive(Debug, Clone)]
pub struct RunFilter {
    /// Only runs of this status: `started`, `completed` or `failed`.
    pub status: Option<String>,
    /// Only runs of this flow.
    pub flow_slug: Option<String>,
    /// At most so many.
    pub limit: u32,
}

impl RunFilter {
    /// The runs of a flow that have not ended, at most 1,000.
    pub fn unfinished(flow_slug: impl Into<String>) -> Self {
        Self {
            status: Some("started".to_owned()),
            flow_slug: Some(flow_slug.into()),
            limit: 1000,
        }
    }
}

/// A run in a list.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct RunSummary {
    /// The run's id.
    pub run_id: Uuid,
    /// Its flow.
    pub flow_slug: String,
    /// `started`, `completed` or `failed`.
    pub status: String,
    /// Why it failed.
    pub error_message: Option<String>,
    /// How many steps have neither completed nor been skipped.
    pub remaining_steps: i32,
    /// When it was started.
    pub started_at: DateTime<Utc>,
    /// When it completed or failed.
    pub ended_at: Option<DateTime<Utc>>,
}

/// A run with its steps.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct RunDetails {
    /// The run.
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub run: RunSummary,
    /// What it was started with.
    pub input: serde_json::Value,
    /// The outputs of its leaf steps by slug, once it has completed.
    pub output: Option<serde_json::Value>,
    /// Its steps, in the order of the definition.
    #[sqlx(skip)]
    pub steps: Vec<StepDetails>,
}

/// A step of a run.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct StepDetails {
    /// Its place in the definition.
    pub step_index: i32,
    /// Its slug.
    pub step_slug: String,
    /// `single` or `map`.
    pub step_type: String,
    /// `created`, `started`, `completed`, `failed` or `skipped`.
    pub status: String,
    /// `condition_unmet`, `handler_failed` or `dependency_skipped`, of a skipped step.
    pub skip_reason: Option<String>,
    /// Why it failed, or why its attempts were exhausted.
    pub error_message: Option<String>,
    /// How many of its dependencies have neither completed nor been skipped.
    pub remaining_deps: i32,
    /// How many tasks it has; unknown for a map step whose source has not completed.
    pub initial_tasks: Option<i32>,
    /// Its tasks, counted by status.
    #[sqlx(flatten)]
    pub tasks: TaskCounts,
    /// When the run was started.
    pub created_at: DateTime<Utc>,
    /// When its tasks were queued.
    pub started_at: Option<DateTime<Utc>>,
    /// When it completed, failed or was skipped.
    pub ended_at: Option<DateTime<Utc>>,
}

/// Tasks of one step, counted by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct TaskCounts {
    /// Waiting in the queue.
    pub queued: i64,
    /// Running.
    pub started: i64,
    /// Done.
    pub completed: i64,
    /// Out of attempts.
    pub failed: i64,
    /// Given up because the step was skipped.
    pub skipped: i64,
    /// Given up because the run failed.
    pub cancelled: i64,
}

/// Lists runs, the newest first.
pub async fn runs(
    executor: impl PgExecutor<'_>,
    filter: &RunFilter,
) -> Result<Vec<RunSummary>, CallError> {
    sql::inspect::list_runs(executor, filter).await
}

/// Reads a run and its steps as they are at one moment; none for an unknown id.
pub async fn run(
    connection: &mut PgConnection,
    run_id: Uuid,
) -> Result<Option<RunDetails>, CallError> {
    sql::inspect::read_run(connection, run_id).await
}

/// Starts a run of the flow with that slug and returns the run's id; with the id of a run that exists, changes nothing.
pub async fn start(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
    input: &RawValue,
    run_id: Option<Uuid>,
) -> Result<Uuid, CallError> {
    sql::run::start_flow(executor, flow_slug, input, run_id).await
}
