//! Finds out which of many idle workers have something to do.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::CallError;

/// The most workers of one call, which locks each one's queue.
pub(crate) const MOST_WORKERS: usize = 100;

/// Returns those of the workers whose queue has a message that can be claimed.
pub(crate) async fn workers_with_work(
    executor: impl PgExecutor<'_>,
    worker_ids: &[Uuid],
) -> Result<Vec<Uuid>, CallError> {
    Ok(
        sqlx::query_scalar("select pgflow.workers_with_work(worker_ids => $1)")
            .bind(worker_ids)
            .fetch_all(executor)
            .await?,
    )
}
