//! Which steps have workers.

use sqlx::PgExecutor;

use super::CallError;

/// The steps of a flow with a queue for each that no live worker serves, in the order of the definition.
///
/// The view `coverage` says the same and more, at the price of counting the messages of every queue.
pub(crate) async fn uncovered_steps(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
) -> Result<Vec<String>, CallError> {
    Ok(sqlx::query_scalar(
        "select s.step_slug from pgflow.steps s where s.flow_slug = $1 and not exists ( \
             select from pgflow.live_workers w \
             where w.flow_slug = s.flow_slug and w.queue_name = s.queue_name and w.deprecated_at is null \
         ) order by s.step_index",
    )
    .bind(flow_slug)
    .fetch_all(executor)
    .await?)
}
