//! Removes a flow.

use sqlx::{Connection, PgConnection, PgExecutor};

use super::CallError;
use crate::maintenance::FlowContents;

/// Removes the flow with all that belongs to it; returns how many runs it had.
///
/// # Errors
///
/// `PF001` when no flow has exactly this slug.
pub(crate) async fn delete_flow_and_data(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
) -> Result<u64, CallError> {
    let removed: i64 = sqlx::query_scalar("select pgflow.delete_flow_and_data(flow_slug => $1)")
        .bind(flow_slug)
        .fetch_one(executor)
        .await?;
    Ok(removed.unsigned_abs())
}

/// Removes the flow as [`delete_flow_and_data`] does, in transactions of their own; returns how
/// many runs were removed.
///
/// # Errors
///
/// `PF001` when no flow has exactly this slug.
pub(crate) async fn delete_flow_in_batches(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<u64, CallError> {
    let mut removed = 0;
    loop {
        // The role's own default could be serializable.
        let mut transaction = connection
            .begin_with("begin transaction isolation level read committed")
            .await?;
        let (runs, is_done): (i64, bool) = sqlx::query_as(
            "select removed_runs, is_done from pgflow.delete_flow_batch(flow_slug => $1)",
        )
        .bind(flow_slug)
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        removed += runs.unsigned_abs();
        if is_done {
            return Ok(removed);
        }
    }
}

/// Reads what [`delete_flow_and_data`] would remove.
///
/// # Errors
///
/// `PF001` when no flow has exactly this slug.
pub(crate) async fn read_contents(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<FlowContents, CallError> {
    loop {
        if let Some(contents) = find_contents(&mut *connection, flow_slug).await? {
            return Ok(contents);
        }
        // The deletion knows best why there is nothing to delete. Should somebody have defined the
        // flow just now, nothing has happened to it.
        let mut undone = connection
            .begin_with("begin transaction isolation level read committed")
            .await?;
        delete_flow_and_data(&mut *undone, flow_slug).await?;
        undone.rollback().await?;
    }
}

async fn find_contents(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
) -> Result<Option<FlowContents>, CallError> {
    // The queues are those that the deletion drops.
    Ok(sqlx::query_as(
        "select flow.flow_slug, runs.*, \
                (select count(*) from pgflow.live_workers worker \
                 where worker.flow_slug = flow.flow_slug and worker.deprecated_at is null) as live_workers, \
                array(select queue.queue_name::text from pgmq.meta queue \
                      where lower(queue.queue_name::text collate \"C\") in ( \
                          select own.queue_name from pgflow.flow_queues own \
                          where own.flow_slug = flow.flow_slug and not exists (select from pgflow.flow_queues other \
                              where other.queue_name = own.queue_name and other.flow_slug <> flow.flow_slug)) \
                      order by 1) as queues, \
                array(select pgflow._worker_functions_of(flow.flow_slug, array( \
                    select own.queue_name from pgflow.flow_queues own where own.flow_slug = flow.flow_slug))) as functions \
         from pgflow.flows flow \
         cross join lateral ( \
             select count(*) filter (where run.status = 'started') as started, \
                    count(*) filter (where run.status = 'completed') as completed, \
                    count(*) filter (where run.status = 'failed') as failed \
             from pgflow.runs run where run.flow_slug = flow.flow_slug \
         ) runs \
         where flow.flow_slug = $1",
    )
    .bind(flow_slug)
    .fetch_optional(executor)
    .await?)
}
