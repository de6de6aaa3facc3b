//! The numbers of messages in the queues.

use std::collections::HashMap;

use sqlx::{AssertSqlSafe, PgConnection};

use super::{CallError, inspect};
use crate::inspect::QueueDepth;

/// The queues that `coverage` names, each counted separately. Archives are never read.
pub(crate) async fn read_depths(
    connection: &mut PgConnection,
    flow_slug: Option<&str>,
) -> Result<Vec<QueueDepth>, CallError> {
    let routes = inspect::read_coverage(&mut *connection, flow_slug).await?;
    let running = count_running(&mut *connection).await?;
    let names: Vec<&str> = routes.iter().map(|route| &*route.queue_name).collect();
    let counts = hidden_counts(&mut *connection, &names).await?;
    let mut depths = Vec::with_capacity(routes.len());
    for route in routes {
        let hidden_messages = match counts.get(&route.queue_name) {
            Some(query) => count_hidden(&mut *connection, query).await?,
            None => None,
        };
        depths.push(QueueDepth {
            running_tasks: running.get(&route.queue_name).copied().unwrap_or_default(),
            flow_slug: route.flow_slug,
            step_slug: route.step_slug,
            queue_name: route.queue_name,
            live_workers: route.live_workers,
            visible_messages: route.waiting_messages,
            hidden_messages,
            oldest_visible_at: route.oldest_waiting_at,
        });
    }
    Ok(depths)
}

/// The started tasks of each queue that has some.
async fn count_running(connection: &mut PgConnection) -> Result<HashMap<String, i64>, CallError> {
    let counts: Vec<(String, i64)> =
        sqlx::query_as("select queue_name, count(*) from pgflow.started_tasks group by queue_name")
            .fetch_all(connection)
            .await?;
    Ok(counts.into_iter().collect())
}

/// The query that counts the hidden messages of each queue that this role may read.
async fn hidden_counts(
    connection: &mut PgConnection,
    queue_names: &[&str],
) -> Result<HashMap<String, String>, CallError> {
    // `clock_timestamp()` would not be looked up in the index on `vt`.
    let queries: Vec<(String, String)> = sqlx::query_as(
        "select queue.name, format('select count(*) from pgmq.%I where vt > now()', class.relname) \
         from unnest($1::text[]) queue (name) \
         join pg_catalog.pg_namespace namespace on namespace.nspname = 'pgmq' \
         join pg_catalog.pg_class class on class.relnamespace = namespace.oid and class.relname = 'q_' || queue.name \
         where has_schema_privilege(namespace.oid, 'usage') and has_table_privilege(class.oid, 'select')",
    )
    .bind(queue_names)
    .fetch_all(connection)
    .await?;
    Ok(queries.into_iter().collect())
}

/// None when the queue has been dropped in the meantime.
async fn count_hidden(
    connection: &mut PgConnection,
    query: &str,
) -> Result<Option<i64>, CallError> {
    let counted = sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_one(connection)
        .await;
    match counted {
        Ok(count) => Ok(Some(count)),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P01") => Ok(None),
        Err(error) => Err(error.into()),
    }
}
