//! Recovers what dead workers left.

use sqlx::PgExecutor;

use super::CallError;

/// Puts stalled tasks back into their queues; returns how many. The database lets one session at a time do this.
pub(crate) async fn requeue_stalled_tasks(executor: impl PgExecutor<'_>) -> Result<i32, CallError> {
    Ok(sqlx::query_scalar("select pgflow.requeue_stalled_tasks()")
        .fetch_one(executor)
        .await?)
}
