//! Records failed attempts.

use std::time::Duration;

use sqlx::PgExecutor;

use super::{CallError, complete::AttemptKey};

/// What is known of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Seconds until the next attempt, instead of the step's own delay.
    pub(crate) retry_delay: Option<u32>,
    pub(crate) retryable: bool,
}

/// What the database made of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aftermath {
    /// Another attempt follows, after this delay.
    Retried(Duration),
    /// No other follows: the task has failed.
    Failed,
    /// Nothing: the attempt was no longer the current one, or its step or run had ended.
    Stale,
}

/// Records that an attempt failed.
///
/// # Errors
///
/// `PF002` and `PF003` when run or task is unknown, `PF009` for a delay out of bounds.
pub(crate) async fn fail_task(
    executor: impl PgExecutor<'_>,
    key: &AttemptKey,
    failure: &Failure,
) -> Result<Aftermath, CallError> {
    let retry_delay = failure
        .retry_delay
        .map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
    // Recovery and giving back forget the worker, a retry does not. A call that is made again finds what the first one did.
    let task: Option<(String, Option<i32>, bool)> = sqlx::query_as(
        "select status, retry_delay, attempts_count = $6 and last_worker_id is not null and permanently_stalled_at is null \
         from pgflow.fail_task(run_id => $1, step_slug => $2, task_index => $3, error_message => $4, \
                retry_delay => $5, attempt => $6, retryable => $7)",
    )
    .bind(key.run_id)
    .bind(key.step_slug)
    .bind(key.task_index)
    .bind(&failure.message)
    .bind(retry_delay)
    .bind(key.attempt)
    .bind(failure.retryable)
    .fetch_optional(executor)
    .await?;
    Ok(match task {
        Some((status, Some(seconds), true)) if status == "queued" => {
            Aftermath::Retried(Duration::from_secs(seconds.unsigned_abs().into()))
        }
        Some((status, _, true)) if status == "failed" => Aftermath::Failed,
        _ => Aftermath::Stale,
    })
}
