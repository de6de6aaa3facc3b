//! The heartbeats of a process's workers, and the answers to them, every few seconds.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{CallError, complete::AttemptKey};

/// The largest number of attempts that one call may ask about.
pub(crate) const MOST_ATTEMPTS: usize = 10_000;

/// The answer to one worker that is registered, and not marked as stopped.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Heartbeat {
    pub(crate) worker_id: Uuid,
    /// Told to finish what it runs, and to stop.
    pub(crate) is_deprecated: bool,
    pub(crate) deprecated_reason: Option<String>,
}

/// Sends the heartbeats of workers. Those that are unknown, or marked as stopped, get no answer.
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

/// Asks which attempts are no longer the current ones of their tasks; returns their positions, from
/// 0.
pub(crate) async fn lost_attempts(
    executor: impl PgExecutor<'_>,
    attempts: &[AttemptKey],
) -> Result<Vec<usize>, CallError> {
    let columns = Columns::of(attempts);
    let positions: Vec<i32> = sqlx::query_scalar(
        "select pgflow.lost_attempts(run_ids => $1, step_slugs => $2, task_indexes => $3, attempts => $4)",
    )
    .bind(columns.run_ids)
    .bind(columns.step_slugs)
    .bind(columns.task_indexes)
    .bind(columns.attempts)
    .fetch_all(executor)
    .await?;
    Ok(positions
        .into_iter()
        .filter_map(|position| usize::try_from(position - 1).ok())
        .collect())
}

/// Reports that a worker's attempts run past their timeout: their tasks must not start anywhere
/// else while the worker lives.
pub(crate) async fn report_overdue_attempts(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
    attempts: &[AttemptKey],
) -> Result<(), CallError> {
    let columns = Columns::of(attempts);
    sqlx::query(
        "select pgflow.report_overdue_attempts(worker_id => $1, run_ids => $2, step_slugs => $3, task_indexes => $4, \
                attempts => $5)",
    )
    .bind(worker_id)
    .bind(columns.run_ids)
    .bind(columns.step_slugs)
    .bind(columns.task_indexes)
    .bind(columns.attempts)
    .execute(executor)
    .await?;
    Ok(())
}

/// Attempts as functions take them: an array for each part.
struct Columns {
    run_ids: Vec<Uuid>,
    step_slugs: Vec<&'static str>,
    task_indexes: Vec<i32>,
    attempts: Vec<i32>,
}

impl Columns {
    fn of(keys: &[AttemptKey]) -> Self {
        Self {
            run_ids: keys.iter().map(|key| key.run_id).collect(),
            step_slugs: keys.iter().map(|key| key.step_slug).collect(),
            task_indexes: keys.iter().map(|key| key.task_index).collect(),
            attempts: keys.iter().map(|key| key.attempt).collect(),
        }
    }
}
