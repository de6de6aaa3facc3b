//! Removes data permanently: runs that ended long ago, and whole flows.
//!
//! For the operators of a database and for schedulers. The calling role needs the rights of the
//! schema's owner: unlike the functions for workers and clients, these run with the rights of their
//! caller.
//!
//! ```no_run
//! # async fn example(pool: sqlx::PgPool) -> Result<(), pgflow_runtime::sql::CallError> {
//! use std::time::Duration;
//! # use pgflow_runtime as pgflow;
//! use pgflow::maintenance;
//!
//! // Every batch is a transaction of its own, so nothing stays locked for long.
//! let month = Duration::from_hours(30 * 24);
//! while maintenance::prune(&pool, month, 1000).await? > 0 {}
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use serde::Serialize;
use sqlx::{PgConnection, PgExecutor};

use crate::sql::{self, CallError};

/// The data that [`prune`] would remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct Prunable {
    /// Runs.
    pub runs: i64,
    /// The tasks of these runs.
    pub tasks: i64,
}

/// The data that [`delete_flow`] would remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct FlowContents {
    /// The flow.
    pub flow_slug: String,
    /// Its runs.
    #[sqlx(flatten)]
    pub runs: RunCounts,
    /// Its queues that no other flow uses, by name.
    pub queues: Vec<String>,
    /// Its worker functions that have no live worker and served nothing else, by name. They are
    /// removed too.
    pub functions: Vec<String>,
    /// Its workers whose heartbeat is newer than 6 seconds, and that were not asked to stop yet.
    /// They are not removed, but asked to stop.
    pub live_workers: i64,
}

/// Runs of one flow, counted by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct RunCounts {
    /// Not ended.
    pub started: i64,
    /// Completed.
    pub completed: i64,
    /// Failed.
    pub failed: i64,
}

/// Removes one batch of the runs that ended longer ago than `older_than`, the oldest first, with
/// their steps, tasks and messages. Returns how many runs that were; call it again until that is 0.
/// Workers that stopped that long ago are removed too.
///
/// `older_than` is exact to the microsecond; a day of it is 24 hours. A batch holds at most
/// `max_runs` runs, and no further ones once they have 100,000 tasks together. Locked runs are left
/// for a later call.
///
/// While runs end all the time, the answer may never be 0. To remove just what is old enough now,
/// let `older_than` grow by the time that has passed since the first call.
///
/// # Errors
///
/// [`InvalidArgument`](crate::sql::RefusalCode::InvalidArgument) when `max_runs` is 0.
pub async fn prune(
    executor: impl PgExecutor<'_>,
    older_than: Duration,
    max_runs: u32,
) -> Result<u64, CallError> {
    sql::prune::prune_data_older_than(executor, older_than, max_runs).await
}

/// Counts the runs that ended longer ago than `older_than`, and their tasks; removes nothing.
pub async fn prunable(
    executor: impl PgExecutor<'_>,
    older_than: Duration,
) -> Result<Prunable, CallError> {
    sql::prune::count_prunable(executor, older_than).await
}

/// Removes a flow with its runs, whatever their status, its definition, and its queues with their
/// messages. Returns how many runs that were. Its workers are asked to stop.
///
/// Only the exact slug will do. All of it happens in one transaction: the caller's, when the
/// connection is inside one. Until that ends no other flow can be defined, which takes long when
/// the flow has many runs: see [`delete_flow_in_batches`].
///
/// # Errors
///
/// [`UnknownFlow`](crate::sql::RefusalCode::UnknownFlow) when no flow has exactly this slug; the
/// hint names one that differs in case only.
pub async fn delete_flow(executor: impl PgExecutor<'_>, flow_slug: &str) -> Result<u64, CallError> {
    sql::delete_flow::delete_flow_and_data(executor, flow_slug).await
}

/// Removes a flow as [`delete_flow`] does, in short transactions that block no other session.
/// Returns the number of removed runs.
///
/// The first transaction marks the flow: from then on none of its runs and workers starts. When the
/// deletion is interrupted, the flow stays marked, and keeps the runs that it still has; a further
/// call continues. The connection must not be inside a transaction.
///
/// # Errors
///
/// Those of [`delete_flow`].
pub async fn delete_flow_in_batches(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<u64, CallError> {
    sql::delete_flow::delete_flow_in_batches(connection, flow_slug).await
}

/// Reads what [`delete_flow`] would remove, as it is at this moment; removes nothing.
///
/// # Errors
///
/// Those of [`delete_flow`].
pub async fn flow_contents(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<FlowContents, CallError> {
    sql::delete_flow::read_contents(connection, flow_slug).await
}

/// Marks the database as a developer's own: a worker whose flow differs from the stored one then
/// replaces it, runs included, once the workers of the old code have stopped. Nothing else makes a
/// database local.
///
/// # Errors
///
/// When the database is not migrated, or the role is not the schema's owner.
pub async fn mark_local(executor: impl PgExecutor<'_>) -> Result<(), CallError> {
    sql::environment::mark_local(executor).await
}
