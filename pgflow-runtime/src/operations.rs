//! Takes worker functions out of service and back: for operators, and for the programs that deploy
//! workers.
//!
//! A *worker function* is deployed and started under one name; *workers* are its running processes.
//! To replace the code of a function in place, fence it, wait until its workers have stopped,
//! deploy, and end the fence:
//!
//! ```no_run
//! # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! # use pgflow_runtime as pgflow;
//! use pgflow::operations;
//!
//! // All functions of the flow at once: the old code of one step must not run beside the new code of another.
//! let functions = operations::functions_of_flow(&pool, "media_ingest").await?;
//! operations::fence(&pool, &functions, Some("release 42")).await?;
//! while !operations::drain_status(&pool, &functions).await?.is_drained() {
//!     // While everything is fenced, no worker recovers the tasks of dead ones.
//!     operations::requeue_stalled_tasks(&pool).await?;
//!     tokio::time::sleep(Duration::from_secs(1)).await;
//! }
//! // Here the new code is put in place.
//! operations::unfence(&pool, &functions).await?;
//! while !operations::restart_status(&pool, &functions).await?.is_up() {
//!     tokio::time::sleep(Duration::from_secs(1)).await;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The calling role needs the rights of the schema's owner; [`list`], [`functions`],
//! [`functions_of_flow`], [`drain_status`] and [`restart_status`] only read. `pgflow workers` does
//! the same on a command line.
//!
//! A worker lives while its heartbeat is newer than 6 seconds.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::sql::{self, CallError, limit::on_pool, operations::Call};

/// A worker function: what is deployed and started, under one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct WorkerFunction {
    /// Its name: the flow's slug, or the queue's name for a worker of one step, unless the worker
    /// was given another.
    pub function_name: String,
    /// `process`: a supervisor runs its processes; `http`: it is invoked when it has no live
    /// worker.
    pub start_mode: String,
    /// `true` if its workers may start.
    pub enabled: bool,
    /// Since when not.
    pub disabled_at: Option<DateTime<Utc>>,
    /// The reason why not.
    pub disabled_reason: Option<String>,
    /// Since when it is fenced: out of service for a deployment.
    pub fenced_at: Option<DateTime<Utc>>,
    /// The value of [`enabled`](Self::enabled) that the end of the fence restores. None when it is
    /// not fenced.
    pub recorded_enabled: Option<bool>,
    /// The value of [`disabled_at`](Self::disabled_at) that the end of the fence restores.
    pub recorded_disabled_at: Option<DateTime<Utc>>,
    /// The value of [`disabled_reason`](Self::disabled_reason) that the end of the fence restores.
    pub recorded_disabled_reason: Option<String>,
    /// The URL by which a function of start mode `http` is invoked.
    pub http_url: Option<String>,
    /// The time of its last invocation.
    pub last_invoked_at: Option<DateTime<Utc>>,
}

impl WorkerFunction {
    /// Returns whether it is out of service for a deployment.
    pub fn is_fenced(&self) -> bool {
        self.fenced_at.is_some()
    }
}

/// A worker function with its workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FunctionStatus {
    /// The function.
    #[serde(flatten)]
    pub function: WorkerFunction,
    /// Its workers, those that started last first.
    pub workers: Vec<WorkerStatus>,
}

/// A worker and what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its id, new at every start.
    pub worker_id: Uuid,
    /// Its function.
    pub function_name: String,
    /// The flow that it serves.
    pub flow_slug: String,
    /// The step that it serves; none for a worker of all steps.
    pub step_slug: Option<String>,
    /// The queue that it reads.
    pub queue_name: String,
    /// The state of the worker.
    pub state: WorkerState,
    /// The number of tasks that it has started and not ended.
    pub started_tasks: i64,
    /// The time at which it started.
    pub started_at: DateTime<Utc>,
    /// The time of its last heartbeat.
    pub last_heartbeat_at: DateTime<Utc>,
    /// The time at which it was asked to stop.
    pub deprecated_at: Option<DateTime<Utc>>,
    /// The reason why it was asked to stop.
    pub deprecated_reason: Option<String>,
    /// The time at which it stopped.
    pub stopped_at: Option<DateTime<Utc>>,
    /// The build of the application that it runs; none where that is not known.
    pub build: Option<String>,
}

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkerState {
    /// It lives, and takes tasks.
    Running,
    /// It lives, and was asked to stop: it finishes what it runs, and takes nothing more.
    Draining,
    /// It has not said that it stopped, and sent no heartbeat for 6 seconds: it died, or can't
    /// reach the database.
    Lost,
    /// It has stopped.
    Stopped,
}

impl WorkerState {
    /// As the database writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
        }
    }

    /// Returns whether it sent a heartbeat within 6 seconds, and has not stopped.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Running | Self::Draining)
    }
}

/// A worker function before and after a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FunctionChange {
    /// As it was.
    pub before: WorkerFunction,
    /// As it is now.
    pub after: WorkerFunction,
}

impl FunctionChange {
    /// Returns whether the call ended a fence.
    pub fn fence_ended(&self) -> bool {
        self.before.is_fenced() && !self.after.is_fenced()
    }
}

/// The effects of [`fence`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fence {
    /// The functions, by name.
    pub functions: Vec<FunctionChange>,
    /// The workers that were asked to stop by this call; not those that had been asked before.
    pub told_to_stop: Vec<WorkerStatus>,
}

/// The progress of a drain: the workers of some functions that have not stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DrainStatus {
    /// The workers that live, and those, whatever their state, of which a task is still started.
    pub waiting_for: Vec<BusyWorker>,
    /// The functions that are enabled: their workers may be started again at any moment. A fence
    /// keeps them out.
    pub enabled_functions: Vec<String>,
}

impl DrainStatus {
    /// Returns whether none of the functions' workers lives, and none of their tasks is started.
    pub fn is_drained(&self) -> bool {
        self.waiting_for.is_empty()
    }
}

/// A worker that has not ended, or whose tasks have not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct BusyWorker {
    /// The worker.
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub worker: WorkerStatus,
    /// From when on recovery takes the last of its started tasks for lost.
    pub tasks_overdue_at: Option<DateTime<Utc>>,
}

/// The progress of a restart: the workers of some functions that have returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RestartStatus {
    /// The functions of which no worker runs that may take tasks.
    pub without_worker: Vec<String>,
    /// Steps of the functions' flows whose queue no worker serves.
    pub uncovered: Vec<UncoveredStep>,
}

impl RestartStatus {
    /// Returns whether each function has a worker that takes tasks, and each step of their flows is
    /// served.
    pub fn is_up(&self) -> bool {
        self.without_worker.is_empty() && self.uncovered.is_empty()
    }
}

/// A step whose queue no live worker serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct UncoveredStep {
    /// Its flow.
    pub flow_slug: String,
    /// The step.
    pub step_slug: String,
    /// Its queue.
    pub queue_name: String,
}

/// All worker functions, by name.
pub async fn functions(pool: &PgPool) -> Result<Vec<WorkerFunction>, CallError> {
    on_pool!(pool, connection => sql::operations::read_functions(connection))
}

/// The names of the worker functions of a flow, in order: those of which a live worker serves the
/// flow, those whose newest worker did, and those that served one of the flow's queues last. Empty
/// for a flow that never had a worker.
///
/// These are more than the functions that serve it now: a supervisor restarts a worker that has
/// crashed, so a fence without its function would have a gap.
pub async fn functions_of_flow(pool: &PgPool, flow_slug: &str) -> Result<Vec<String>, CallError> {
    on_pool!(pool, connection => sql::operations::read_functions_of_flow(connection, flow_slug))
}

/// Worker functions by name, with their workers; all of them, or those with these names. Names that
/// are not known are left out.
///
/// Workers that have stopped are left out too, unless `with_stopped`.
pub async fn list(
    pool: &PgPool,
    function_names: Option<&[String]>,
    with_stopped: bool,
) -> Result<Vec<FunctionStatus>, CallError> {
    on_pool!(pool, connection => sql::operations::list(connection, function_names, with_stopped))
}

/// Takes functions out of service for a deployment, all of them in one transaction: records whether
/// each is enabled, disables it, and asks its workers to stop. A function that is fenced already
/// keeps its record.
///
/// # Errors
///
/// [`UnknownFlow`](crate::sql::RefusalCode::UnknownFlow) when a function is not known, and
/// [`InvalidArgument`](crate::sql::RefusalCode::InvalidArgument) when none is named; nothing is
/// changed then.
pub async fn fence(
    pool: &PgPool,
    function_names: &[String],
    reason: Option<&str>,
) -> Result<Fence, CallError> {
    on_pool!(pool, connection => sql::operations::fence(connection, function_names, reason))
}

/// Ends the fence of functions, all of them in one transaction: restores what was recorded, which
/// may be that a function is disabled. Functions that are not fenced are left as they are.
///
/// # Errors
///
/// Those of [`fence`].
pub async fn unfence(
    pool: &PgPool,
    function_names: &[String],
) -> Result<Vec<FunctionChange>, CallError> {
    on_pool!(pool, connection => sql::operations::change(connection, function_names, Call::Unfence))
}

/// Asks the workers of functions to stop: they finish their tasks, and take no more. The functions
/// are unchanged. Returns the ids of the workers that were asked by this call.
///
/// # Errors
///
/// Those of [`fence`].
pub async fn deprecate(
    pool: &PgPool,
    function_names: &[String],
    reason: Option<&str>,
) -> Result<Vec<Uuid>, CallError> {
    on_pool!(pool, connection => sql::operations::deprecate(connection, function_names, reason))
}

/// Reads how far the workers of functions have stopped.
pub async fn drain_status(
    pool: &PgPool,
    function_names: &[String],
) -> Result<DrainStatus, CallError> {
    on_pool!(pool, connection => sql::operations::drain_status(connection, function_names))
}

/// Reads how far the workers of functions have come back after the end of a fence.
///
/// A worker counts when it is live and was not asked to stop. The fence asks all existing workers,
/// and lets none start. So a worker that was not asked has started after the fence ended.
pub async fn restart_status(
    pool: &PgPool,
    function_names: &[String],
) -> Result<RestartStatus, CallError> {
    on_pool!(pool, connection => sql::operations::restart_status(connection, function_names))
}

/// Recovers the tasks of dead workers, until none is due; returns the number of requeued tasks.
/// Every running worker of any flow does this, but when everything is fenced there is none. So this
/// call treats a worker that has been silent for `lost_after` as dead, even if no other worker is
/// left to show that the database could be reached.
pub async fn requeue_stalled_tasks(pool: &PgPool) -> Result<u64, CallError> {
    let mut requeued = 0;
    loop {
        let batch =
            on_pool!(pool, connection => sql::maintenance::recover_tasks(connection, true))?;
        requeued += u64::from(batch.requeued.unsigned_abs());
        if !batch.more {
            return Ok(requeued);
        }
    }
}

/// Lets the workers of functions start again, of all of them in one transaction. Of a fenced
/// function, only the fence ends: what was recorded is restored, which may be that it is disabled.
///
/// # Errors
///
/// [`UnknownFlow`](crate::sql::RefusalCode::UnknownFlow) when a function is not known; nothing is
/// changed then.
pub async fn enable(
    pool: &PgPool,
    function_names: &[String],
) -> Result<Vec<FunctionChange>, CallError> {
    on_pool!(pool, connection => sql::operations::change(connection, function_names, Call::Enable))
}

/// A message that no worker can take, with which each worker that reads it stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct UnsupportedMessage {
    /// Its queue.
    pub queue_name: String,
    /// Its id in the queue.
    pub message_id: i64,
    /// The time at which it was sent.
    pub enqueued_at: DateTime<Utc>,
    /// From when on it can be read.
    pub visible_at: DateTime<Utc>,
    /// The number of times that it was read.
    pub read_count: i32,
    /// `true` if a task has it, which would never run without it.
    pub has_task: bool,
    /// The reason why no worker can take it.
    pub reason: String,
    /// Its body; none unless it was asked for, as it may hold anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
}

/// A message that was archived, or that stays since a task has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct ArchivedMessage {
    /// Its queue.
    pub queue_name: String,
    /// Its id in the queue.
    pub message_id: i64,
    /// The reason why no worker can take it.
    pub reason: String,
    /// `true` if it was archived.
    pub archived: bool,
}

/// The effects of [`enable_archiving`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cleared {
    /// The functions, enabled now; empty when messages stay.
    pub functions: Vec<FunctionChange>,
    /// The messages that were archived.
    pub archived: Vec<ArchivedMessage>,
    /// The messages that can't be archived because tasks have them. Where there are some, nothing
    /// was changed at all: each worker would stop at them again.
    pub kept: Vec<ArchivedMessage>,
}

/// Lists the messages that no worker can take, of one queue or of all queues of flows. Reads each
/// queue from its beginning to its end.
pub async fn unsupported_messages(
    pool: &PgPool,
    queue_name: Option<&str>,
    with_body: bool,
) -> Result<Vec<UnsupportedMessage>, CallError> {
    on_pool!(pool, connection => sql::operations::unsupported_messages(connection, queue_name, with_body))
}

/// Archives the messages that no task has from the queues of functions, and lets the functions'
/// workers start again, all in one transaction.
///
/// # Errors
///
/// Those of [`enable`].
pub async fn enable_archiving(
    pool: &PgPool,
    function_names: &[String],
) -> Result<Cleared, CallError> {
    on_pool!(pool, connection => sql::operations::enable_archiving(connection, function_names))
}

/// New options of a flow or of a step, in seconds; those that are none stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuning {
    /// The number of attempts of a task, including the first one.
    pub max_attempts: Option<u32>,
    /// The delay that the backoff grows from: twice as long before the second attempt, and so on.
    pub base_delay: Option<u32>,
    /// The longest delay of the backoff.
    pub max_delay: Option<u32>,
    /// The longest time for which a task may be postponed without an attempt that counts.
    pub give_up_after: Option<u32>,
    /// The longest time for an attempt.
    pub timeout: Option<u32>,
    /// The delay of a step after its dependencies have ended.
    pub start_delay: Option<u32>,
}

/// Sets options of a flow, or of one of its steps, for all attempts that start from now on. In a
/// local database the next worker that starts sets those of its code again.
///
/// # Errors
///
/// [`UnknownFlow`](crate::sql::RefusalCode::UnknownFlow),
/// [`UnknownTask`](crate::sql::RefusalCode::UnknownTask) for a step that the flow does not have,
/// [`InvalidDefinition`](crate::sql::RefusalCode::InvalidDefinition) for a value out of its bounds,
/// and [`InvalidArgument`](crate::sql::RefusalCode::InvalidArgument) without any option.
pub async fn tune(
    executor: impl sqlx::PgExecutor<'_>,
    flow_slug: &str,
    step_slug: Option<&str>,
    tuning: Tuning,
) -> Result<(), CallError> {
    sql::operations::tune(executor, flow_slug, step_slug, tuning).await
}

/// Lets no worker of functions start any more, of all of them in one transaction; workers that run
/// continue. A function that is disabled already keeps its time and reason. Of a fenced one, what
/// the end of the fence restores becomes disabled.
///
/// # Errors
///
/// Those of [`enable`].
pub async fn disable(
    pool: &PgPool,
    function_names: &[String],
    reason: Option<&str>,
) -> Result<Vec<FunctionChange>, CallError> {
    on_pool!(pool, connection => sql::operations::change(connection, function_names, Call::Disable { reason }))
}
