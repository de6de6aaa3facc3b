//! Records failed attempts.

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

/// Records that an attempt failed; returns the task's status after that.
///
/// # Errors
///
/// `PF002` and `PF003` when run or task is unknown, `PF009` for a delay out of bounds.
pub(crate) async fn fail_task(
    executor: impl PgExecutor<'_>,
    key: &AttemptKey,
    failure: &Failure,
) -> Result<Option<String>, CallError> {
    let retry_delay = failure
        .retry_delay
        .map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
    Ok(sqlx::query_scalar(
        "select status from pgflow.fail_task(run_id => $1, step_slug => $2, task_index => $3, error_message => $4, \
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
    .await?)
}
