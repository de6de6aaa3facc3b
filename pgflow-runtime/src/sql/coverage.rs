//! Which steps have workers.

use sqlx::PgExecutor;

use super::CallError;
use crate::inspect::Route;

/// The steps of a flow with a queue for each that no live worker serves, in the order of the definition.
///
/// The view `coverage` says the same and more, at the price of counting the messages of every queue.
pub(crate) async fn uncovered_steps(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
) -> Result<Vec<String>, CallError> {
    Ok(sqlx::query_scalar(
        "select s.step_slug from pgflow.steps s where s.flow_slug = $1 and not exists ( \
             select from pgflow.workers w \
             where w.flow_slug = s.flow_slug and w.queue_name = s.queue_name and w.stopped_at is null and w.deprecated_at is null \
                 and w.last_heartbeat_at > now() - interval '6 seconds' \
         ) order by s.step_index",
    )
    .bind(flow_slug)
    .fetch_all(executor)
    .await?)
}

/// Every queue of every flow, or of one; in the order of slugs and definitions.
pub(crate) async fn read_coverage(
    executor: impl PgExecutor<'_>,
    flow_slug: Option<&str>,
) -> Result<Vec<Route>, CallError> {
    Ok(sqlx::query_as(
        "select flow_slug, queue_mode, step_slug, queue_name, is_covered, live_workers, last_heartbeat_at, waiting_messages, oldest_waiting_at \
         from pgflow.coverage where $1::text is null or flow_slug = $1",
    )
    .bind(flow_slug)
    .fetch_all(executor)
    .await?)
}
