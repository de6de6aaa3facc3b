//! Gives claimed tasks back.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{CallError, claim::ClaimedTask};

/// A start of a task by a claim: what names it when it goes back.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) run_id: Uuid,
    pub(crate) step_slug: String,
    pub(crate) task_index: i32,
    pub(crate) attempt: i32,
    started_at: Option<DateTime<Utc>>,
}

impl From<&ClaimedTask> for Start {
    fn from(task: &ClaimedTask) -> Self {
        Self {
            run_id: task.run_id,
            step_slug: task.step_slug.clone(),
            task_index: task.task_index,
            attempt: task.attempt,
            started_at: task.started_at,
        }
    }
}

/// Puts tasks that this worker claimed and did not bring to an end back into their queue; no
/// attempt is counted. Returns how many. May be made again: what was claimed anew in the meantime
/// is another start.
pub(crate) async fn release_tasks(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
    tasks: &[Start],
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

/// Gives back the tasks of claims whose answers were lost: of all that the worker made after one
/// that was answered, except those that were answered since. Returns how many.
pub(crate) async fn release_lost_claims(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
    after: Option<DateTime<Utc>>,
    answered: &[DateTime<Utc>],
) -> Result<i32, CallError> {
    Ok(sqlx::query_scalar(
        "select pgflow.release_lost_claims(worker_id => $1, after => $2, answered => $3)",
    )
    .bind(worker_id)
    .bind(after)
    .bind(answered)
    .fetch_one(executor)
    .await?)
}
