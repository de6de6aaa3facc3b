//! What the workers of a process say and hear every few seconds.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{CallError, complete::AttemptKey};

/// How many attempts one call may ask about.
pub(crate) const MOST_ATTEMPTS: usize = 10_000;

/// The answer to one worker that is registered, and not marked as stopped.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Heartbeat {
    pub(crate) worker_id: Uuid,
    /// Told to finish what it runs, and to stop.
    pub(crate) is_deprecated: bool,
    pub(crate) deprecated_reason: Option<String>,
}

/// Says that the workers live. Those that are unknown, or marked as stopped, get no answer.
pub(crate) async fn worker_heartbeats(
    executor: impl PgExecutor<'_>,
    worker_ids: &[Uuid],
) -> Result<Vec<Heartbeat>, CallError> {
    Ok(sqlx::query_as(
        "select worker_id, is_deprecated, deprecated_reason from pgflow.worker_heartbeats(worker_ids => $1)",
    )
    .bind(worker_ids)
    .fetch_all(executor)
    .await?)
}

/// Asks which attempts are no longer the current ones of their tasks; returns their positions, from 0.
pub(crate) async fn lost_attempts(
    executor: impl PgExecutor<'_>,
    attempts: &[AttemptKey],
) -> Result<Vec<usize>, CallError> {
    let mut run_ids = Vec::with_capacity(attempts.len());
    let mut step_slugs = Vec::with_capacity(attempts.len());
    let mut task_indexes = Vec::with_capacity(attempts.len());
    let mut numbers = Vec::with_capacity(attempts.len());
    for key in attempts {
        run_ids.push(key.run_id);
        step_slugs.push(key.step_slug);
        task_indexes.push(key.task_index);
        numbers.push(key.attempt);
    }
    let positions: Vec<i32> = sqlx::query_scalar(
        "select pgflow.lost_attempts(run_ids => $1, step_slugs => $2, task_indexes => $3, attempts => $4)",
    )
    .bind(run_ids)
    .bind(step_slugs)
    .bind(task_indexes)
    .bind(numbers)
    .fetch_all(executor)
    .await?;
    Ok(positions
        .into_iter()
        .filter_map(|position| usize::try_from(position - 1).ok())
        .collect())
}
