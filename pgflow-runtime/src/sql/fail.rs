//! Records attempts that failed, or were postponed.

use std::time::Duration;

use sqlx::PgExecutor;

use super::{CallError, complete::AttemptKey};
use crate::flow::Retry;

/// The details of an attempt that returned no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) retry: Retry,
}

/// The database's decision about such an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aftermath {
    /// Another attempt follows, after this delay.
    Retried(Duration),
    /// No other follows: the task has failed.
    Failed,
    /// Nothing: the attempt was no longer the current one, or its step or run had ended.
    Stale,
}

const FAIL: &str = "
    select status, retry_delay, attempts_count = $6 and last_worker_id is not null and permanently_stalled_at is null
    from pgflow.fail_task(run_id => $2, step_slug => $3, task_index => $4, error_message => $5,
        retry_delay => $1::float8::numeric, attempt => $6, retryable => $7)";

const POSTPONE: &str = "
    select status, retry_delay, attempts_count = $6 and last_worker_id is not null and permanently_stalled_at is null
    from pgflow.postpone_task(run_id => $2, step_slug => $3, task_index => $4, error_message => $5,
        delay => $1::float8::numeric, attempt => $6)";

/// Records that an attempt failed, or that it was postponed.
///
/// # Errors
///
/// `PF003` when the task is unknown, `PF009` for a delay out of bounds.
pub(crate) async fn fail_task(
    executor: impl PgExecutor<'_>,
    key: &AttemptKey,
    failure: &Failure,
) -> Result<Aftermath, CallError> {
    // Recovery and returning forget the worker, a retry does not. A call that is made again finds
    // what the first one did.
    let call = match failure.retry {
        Retry::Postponed(after) => sqlx::query_as(POSTPONE).bind(after.as_secs_f64()),
        retry => {
            let seconds = retry.delay().map(|delay| delay.as_secs_f64());
            sqlx::query_as(FAIL).bind(seconds)
        }
    };
    let call = call
        .bind(key.run_id)
        .bind(key.step_slug)
        .bind(key.task_index)
        .bind(&failure.message)
        .bind(key.attempt);
    let call = match failure.retry {
        Retry::Postponed(_) => call,
        retry => call.bind(!retry.is_permanent()),
    };
    let task: Option<(String, Option<i32>, bool)> = call.fetch_optional(executor).await?;
    Ok(match task {
        Some((status, Some(seconds), true)) if status == "queued" => {
            Aftermath::Retried(Duration::from_secs(seconds.unsigned_abs().into()))
        }
        Some((status, _, true)) if status == "failed" => Aftermath::Failed,
        _ => Aftermath::Stale,
    })
}
