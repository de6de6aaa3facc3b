//! Takes tasks off a queue.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use sqlx::{Connection, PgConnection, PgExecutor, Row, postgres::PgRow};
use uuid::Uuid;

use super::{CallError, RawJson};

/// The result of one claim.
#[derive(Debug)]
pub(crate) enum Claim {
    /// Started for this worker; perhaps none.
    Tasks(Vec<ClaimedTask>),
    /// The queue holds work that this worker must not take: nothing was claimed, and its function is disabled.
    Unsupported(Vec<UnsupportedMessage>),
}

/// One attempt, started by the claim.
#[derive(Debug)]
pub(crate) struct ClaimedTask {
    pub(crate) run_id: Uuid,
    pub(crate) step_slug: String,
    pub(crate) task_index: i32,
    pub(crate) attempt: i32,
    pub(crate) max_attempts: i32,
    pub(crate) timeout: Duration,
    pub(crate) message_id: i64,
    pub(crate) read_count: i32,
    pub(crate) enqueued_at: DateTime<Utc>,
    /// Tells this start from one under the same number; not known of tasks that the worker took itself.
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub(crate) input: Box<RawValue>,
    pub(crate) flow_input: Option<Box<RawValue>>,
}

/// A message that no worker of this flow may take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedMessage {
    /// The queue that the message lies in.
    pub queue_name: String,
    /// The message's id in that queue.
    pub message_id: i64,
    /// Why it can't be taken.
    pub reason: String,
}

/// Claims up to `max_tasks` tasks for the worker, in one transaction of the database.
///
/// # Errors
///
/// `PF007` when the worker is not registered, or stopped.
pub(crate) async fn claim_tasks(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
    max_tasks: i32,
) -> Result<Claim, CallError> {
    let rows = sqlx::query(
        "select outcome, run_id, step_slug, task_index, attempt, max_attempts, timeout, message_id, \
                read_count, enqueued_at, started_at, input, flow_input, queue_name, reason \
         from pgflow.claim_tasks(worker_id => $1, max_tasks => $2)",
    )
    .bind(worker_id)
    .bind(max_tasks)
    .fetch_all(executor)
    .await?;

    let mut tasks = Vec::with_capacity(rows.len());
    let mut unsupported = Vec::new();
    for row in &rows {
        if row.try_get::<&str, _>("outcome")? == "claimed" {
            tasks.push(claimed(row)?);
        } else {
            unsupported.push(offender(row)?);
        }
    }
    Ok(if unsupported.is_empty() {
        Claim::Tasks(tasks)
    } else {
        Claim::Unsupported(unsupported)
    })
}

/// The same where an ordinary claim failed, and would fail again. Tasks whose input can't be read or printed are handed out with the reason in its
/// place, so that their attempts fail, and no others.
pub(crate) async fn claim_tasks_carefully(
    connection: &mut PgConnection,
    worker_id: Uuid,
    max_tasks: i32,
) -> Result<Claim, CallError> {
    let mut transaction = connection.begin().await?;
    sqlx::query("select pg_catalog.set_config('pgflow.careful_claims', 'on', true)")
        .execute(&mut *transaction)
        .await?;
    let claim = claim_tasks(&mut *transaction, worker_id, max_tasks).await?;
    transaction.commit().await?;
    Ok(claim)
}

fn claimed(row: &PgRow) -> Result<ClaimedTask, sqlx::Error> {
    let timeout: i32 = row.try_get("timeout")?;
    Ok(ClaimedTask {
        run_id: row.try_get("run_id")?,
        step_slug: row.try_get("step_slug")?,
        task_index: row.try_get("task_index")?,
        attempt: row.try_get("attempt")?,
        max_attempts: row.try_get("max_attempts")?,
        timeout: Duration::from_secs(timeout.unsigned_abs().into()),
        message_id: row.try_get("message_id")?,
        read_count: row.try_get("read_count")?,
        enqueued_at: row.try_get("enqueued_at")?,
        started_at: row.try_get("started_at")?,
        input: row.try_get::<RawJson, _>("input")?.0,
        flow_input: row
            .try_get::<Option<RawJson>, _>("flow_input")?
            .map(|json| json.0),
    })
}

fn offender(row: &PgRow) -> Result<UnsupportedMessage, sqlx::Error> {
    Ok(UnsupportedMessage {
        queue_name: row.try_get("queue_name")?,
        message_id: row.try_get("message_id")?,
        reason: row.try_get("reason")?,
    })
}
