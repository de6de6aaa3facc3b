//! Reads runs of any flow, and starts them, without the flow's types: for command lines and
//! dashboards.
//!
//! Programs that know their flows use [`client`](crate::client).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::sql::{self, CallError};

/// The selection of the runs to list.
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
    /// The reason why it failed.
    pub error_message: Option<String>,
    /// The number of steps that have neither completed nor been skipped.
    pub remaining_steps: i32,
    /// The time at which it was started.
    pub started_at: DateTime<Utc>,
    /// The time at which it completed or failed.
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
    /// Its input.
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
    /// `failure` or `end` of a step that runs when the run has ended.
    pub runs_on: Option<String>,
    /// `created`, `started`, `completed`, `failed` or `skipped`.
    pub status: String,
    /// `condition_unmet`, `handler_failed` or `dependency_skipped`, of a skipped step.
    pub skip_reason: Option<String>,
    /// The reason why it failed; for a step that was skipped because a task of it failed, the error
    /// of that task.
    pub error_message: Option<String>,
    /// The number of its dependencies that have neither completed nor been skipped.
    pub remaining_deps: i32,
    /// The number of its tasks; unknown for a map step whose source has not completed.
    pub initial_tasks: Option<i32>,
    /// Its tasks, counted by status.
    #[sqlx(flatten)]
    pub tasks: TaskCounts,
    /// The start of the run; for an end step, the end of the run.
    pub created_at: DateTime<Utc>,
    /// The time at which its tasks were queued.
    pub started_at: Option<DateTime<Utc>>,
    /// The time at which it completed, failed or was skipped. None for a step that had not ended
    /// when its run failed: its status stays `created` or `started`, and none of its tasks
    /// continues after the end of the run.
    pub ended_at: Option<DateTime<Utc>>,
    /// The reason why it does not run, or that it does; none once it, or the run that it is part
    /// of, has ended. The same as [`explain_step`].
    #[sqlx(json(nullable))]
    pub explanation: Option<StepExplanation>,
}

impl StepDetails {
    /// The number of failed elements that a map with `on_element_failure = "null"` does without
    /// so far; 0 if all of them failed, and the step with them.
    pub fn failed_elements(&self) -> i64 {
        let goes_on = matches!(self.status.as_str(), "started" | "completed");
        // A failure of any other step ends it.
        if goes_on { self.tasks.failed } else { 0 }
    }
}

/// Tasks of one step, counted by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::FromRow)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskCounts {
    /// Waiting in the queue.
    pub queued: i64,
    /// Running.
    pub started: i64,
    /// Done.
    pub completed: i64,
    /// Failed permanently: out of attempts, or with an error that rules others out.
    pub failed: i64,
    /// Not ended when their step was skipped.
    pub skipped: i64,
    /// Not ended when their run failed.
    pub cancelled: i64,
}

/// The reason why a step of a run is not running, or that it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepExplanation {
    /// The run.
    pub run_id: Uuid,
    /// Its flow.
    pub flow_slug: String,
    /// The step.
    pub step_slug: String,
    /// The run's status: `started`, `completed` or `failed`.
    pub run_status: String,
    /// The step's status: `created`, `started`, `completed`, `failed` or `skipped`.
    pub status: String,
    /// `failure` or `end` of a step that runs when the run has ended. Before its start it is
    /// `created`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_on: Option<String>,
    /// The reason, for programs.
    pub reason: StepReason,
    /// The reason, for people.
    pub message: String,
    /// `condition_unmet`, `handler_failed` or `dependency_skipped`, of a skipped step.
    pub skip_reason: Option<String>,
    /// The reason why it failed; for a step that was skipped because a task of it failed, the error
    /// of that task.
    pub error_message: Option<String>,
    /// Its dependencies that have neither completed nor been skipped, in the order of the
    /// definition.
    pub waiting_for: Vec<Dependency>,
    /// Its tasks, counted by status.
    pub tasks: TaskCounts,
    /// Its attempts under way, the longest first, 10 at most.
    pub running: Vec<RunningAttempt>,
    /// The time from which its next task can be read from the queue. Only looked up when none of
    /// its tasks runs.
    pub visible_at: Option<DateTime<Utc>>,
    /// The postponement of its next task, if there is one.
    #[serde(default)]
    pub postponed: Option<Postponed>,
    /// The queue of its tasks.
    pub queue_name: String,
    /// The number of workers that serve that queue: those whose heartbeat is newer than 6 seconds,
    /// and that were not asked to stop.
    pub live_workers: i64,
    /// The reason why the worker function that served the queue last may not start again.
    pub disabled_reason: Option<String>,
}

/// The postponements of a task since its last attempt that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Postponed {
    /// Their number.
    pub times: i32,
    /// The first of them.
    pub since: DateTime<Utc>,
    /// The cause of the latest.
    pub cause: String,
}

/// The reason why a step is not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepReason {
    /// It has completed.
    Completed,
    /// It was skipped.
    Skipped,
    /// It has failed.
    Failed,
    /// Its run has ended before it, or not in the way for which it runs.
    RunEnded,
    /// It runs when the run has ended, and the run has not.
    WaitingForRunEnd,
    /// Steps that it depends on have not ended.
    WaitingForDependencies,
    /// Nothing holds it up, and yet it did not continue: a fault, or rows changed manually.
    NotAdvanced,
    /// A worker is at it.
    Running,
    /// Its workers have been silent for 6 seconds; recovery takes its tasks when they are past
    /// their time.
    WorkerLost,
    /// Its workers are past their time; recovery takes its tasks.
    Stalled,
    /// A waiting task's message is missing from its queue: no worker will ever read it.
    MessageMissing,
    /// Its start is delayed.
    StartDelay,
    /// An attempt failed, and the next one is delayed.
    RetryDelay,
    /// An attempt was postponed by its handler, and does not count.
    Postponed,
    /// Its task's attempts are used up, and the last one ended with its worker: it gets one more,
    /// for which nothing else runs in its worker's process.
    WaitingToRunAlone,
    /// No live worker serves its queue.
    NoWorker,
    /// A live worker will take it.
    WaitingForWorker,
    /// One that this release does not know, of a newer database: read the message.
    #[serde(other)]
    Other,
}

/// A step that another one depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Dependency {
    /// Its slug.
    pub step_slug: String,
    /// Its status.
    pub status: String,
}

/// An attempt at a task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunningAttempt {
    /// The task's place among the tasks of the step, counted from 0.
    pub task_index: i32,
    /// The number of the attempt, counted from 1.
    pub attempt: i32,
    /// The worker that claimed it; none after rows were changed manually.
    pub worker_id: Option<Uuid>,
    /// The build of the application that the worker runs; none where that is not known.
    #[serde(default)]
    pub build: Option<String>,
    /// The time at which it started.
    pub started_at: DateTime<Utc>,
    /// The time at which recovery treats it as lost.
    pub overdue_at: DateTime<Utc>,
}

/// A queue of a flow: who serves it, and what waits in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct Route {
    /// The flow.
    pub flow_slug: String,
    /// `flow` or `step`.
    pub queue_mode: String,
    /// The step; none for the one queue of a flow.
    pub step_slug: Option<String>,
    /// The queue.
    pub queue_name: String,
    /// `true` if it has a live worker.
    pub is_covered: bool,
    /// The number of workers that serve it: those whose heartbeat is newer than 6 seconds, and that
    /// were not asked to stop.
    pub live_workers: i64,
    /// The newest heartbeat of any worker that ever served it.
    pub last_heartbeat_at: Option<DateTime<Utc>>,
    /// The number of messages that can be read now; none when the queue does not exist.
    pub waiting_messages: Option<i64>,
    /// Since when the oldest of them can.
    pub oldest_waiting_at: Option<DateTime<Utc>>,
}

/// A queue of a flow: how much is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QueueDepth {
    /// The flow.
    pub flow_slug: String,
    /// The step; none for the one queue of a flow.
    pub step_slug: Option<String>,
    /// The queue.
    pub queue_name: String,
    /// The number of workers that serve it: those whose heartbeat is newer than 6 seconds, and that
    /// were not asked to stop.
    pub live_workers: i64,
    /// The number of messages that can be read now; none when the queue does not exist.
    pub visible_messages: Option<i64>,
    /// The number of messages that can't be read yet: their tasks run, or are delayed. None when
    /// the queue does not exist, and when the role must not read queues, as only their owner may.
    pub hidden_messages: Option<i64>,
    /// The number of running tasks.
    pub running_tasks: i64,
    /// Since when the oldest message that can be read could be.
    pub oldest_visible_at: Option<DateTime<Utc>>,
}

/// The slugs of all flows, in order.
pub async fn flow_slugs(executor: impl PgExecutor<'_>) -> Result<Vec<String>, CallError> {
    sql::inspect::list_flows(executor).await
}

/// Counts the messages in every queue of every flow, or of one, in the order of slugs and
/// definitions. Archived messages are not counted.
pub async fn queues(
    connection: &mut PgConnection,
    flow_slug: Option<&str>,
) -> Result<Vec<QueueDepth>, CallError> {
    sql::queues::read_depths(connection, flow_slug).await
}

/// Every queue of every flow, or of one, in the order of slugs and definitions. Counts the messages
/// that wait in each.
pub async fn coverage(
    executor: impl PgExecutor<'_>,
    flow_slug: Option<&str>,
) -> Result<Vec<Route>, CallError> {
    sql::inspect::read_coverage(executor, flow_slug).await
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

/// Starts a run of the flow with that slug and returns the run's id; with the id of a run that
/// exists with the same input, changes nothing.
pub async fn start(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
    input: &RawValue,
    run_id: Option<Uuid>,
) -> Result<Uuid, CallError> {
    sql::run::start_flow(executor, flow_slug, input, run_id).await
}

/// Explains why a step of a run is not running.
///
/// # Errors
///
/// [`UnknownRun`](crate::sql::RefusalCode::UnknownRun), and
/// [`UnknownTask`](crate::sql::RefusalCode::UnknownTask) for a step that the run does not have; its
/// hint names those that it has.
pub async fn explain_step(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
    step_slug: &str,
) -> Result<StepExplanation, CallError> {
    sql::explain::explain_step(executor, run_id, step_slug).await
}

/// As [`explain_step`]; the answer as the database gives it, for passing it on.
pub async fn explain_step_as_json(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
    step_slug: &str,
) -> Result<serde_json::Value, CallError> {
    sql::explain::explain_step(executor, run_id, step_slug).await
}

/// As [`explain_step`], of each step of a run, at one moment and in the order of the definition;
/// empty for an unknown id.
pub async fn explain_run(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Vec<StepExplanation>, CallError> {
    sql::explain::explain_run(executor, run_id).await
}

/// As [`explain_run`]; the answers as the database gives them, for passing them on.
pub async fn explain_run_as_json(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Vec<serde_json::Value>, CallError> {
    sql::explain::explain_run(executor, run_id).await
}
