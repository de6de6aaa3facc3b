//! The workers of each step.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::CallError;
use crate::operations::UncoveredStep;

/// The steps of these flows whose queue no live worker serves, in the order of slugs and
/// definitions.
///
/// The view `coverage` says the same and more, at the price of counting the messages of every
/// queue.
pub(crate) async fn uncovered_steps(
    executor: impl PgExecutor<'_>,
    flow_slugs: &[&str],
) -> Result<Vec<UncoveredStep>, CallError> {
    Ok(sqlx::query_as(
        "select s.flow_slug, s.step_slug, s.queue_name from pgflow.steps s where s.flow_slug = any ($1) and not exists ( \
             select from pgflow.live_workers w \
             where w.flow_slug = s.flow_slug and w.queue_name = s.queue_name and w.deprecated_at is null \
         ) order by s.flow_slug, s.step_index",
    )
    .bind(flow_slugs)
    .fetch_all(executor)
    .await?)
}

/// Returns whether the worker lives and was not asked to stop: what it was started with still
/// holds.
pub(crate) async fn is_serving(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
) -> Result<bool, CallError> {
    Ok(sqlx::query_scalar(
        "select exists (select from pgflow.live_workers w where w.worker_id = $1 and w.deprecated_at is null)",
    )
    .bind(worker_id)
    .fetch_one(executor)
    .await?)
}
