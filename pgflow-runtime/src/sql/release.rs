//! Gives claimed tasks back.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{CallError, claim::ClaimedTask};

/// Puts tasks that this worker claimed and did not start back into their queue; no attempt is counted. Returns how many. May be made again:
/// what was claimed anew in the meantime is another start.
pub(crate) async fn release_tasks(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
    tasks: &[ClaimedTask],
) -> Result<i32, CallError> {
    let run_ids: Vec<Uuid> = tasks.iter().map(|task| task.run_id).collect();
    let step_slugs: Vec<&str> = tasks.iter().map(|task| task.step_slug.as_str()).collect();
    let task_indexes: Vec<i32> = tasks.iter().map(|task| task.task_index).collect();
    let attempts: Vec<i32> = tasks.iter().map(|task| task.attempt).collect();
    let starts: Vec<Option<DateTime<Utc>>> = tasks.iter().map(|task| task.started_at).collect();
    Ok(sqlx::query_scalar(
        "select pgflow.release_tasks(worker_id => $1, run_ids => $2, step_slugs => $3, task_indexes => $4, attempts => $5, starts => $6)",
    )
    .bind(worker_id)
    .bind(run_ids)
    .bind(step_slugs)
    .bind(task_indexes)
    .bind(attempts)
    .bind(starts)
    .fetch_one(executor)
    .await?)
}
