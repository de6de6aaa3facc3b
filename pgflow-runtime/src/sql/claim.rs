//! Takes tasks off a queue.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use serde_json::value::RawValue;
use sqlx::{Connection, PgConnection, PgExecutor, Row, postgres::PgRow, types::Json};
use uuid::Uuid;

use super::CallError;

/// The result of one claim.
#[derive(Debug)]
pub(crate) enum Claim {
    /// Started for this worker; perhaps none.
    Tasks(ClaimedTasks),
    /// The queue holds work that this worker must not take: nothing was claimed, and its function
    /// is disabled.
    Unsupported(Vec<UnsupportedMessage>),
}

/// The tasks that a claim started.
#[derive(Debug, Default)]
pub(crate) struct ClaimedTasks {
    /// Kept, to be run.
    pub(crate) tasks: Vec<ClaimedTask>,
    /// The bytes of their inputs.
    pub(crate) bytes: usize,
    /// To be returned: their inputs were too large to be kept, and were dropped.
    pub(crate) excess: Vec<ClaimedTask>,
}

/// The part of a claim that is kept in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// Tasks that are kept, whatever their size.
    pub(crate) tasks: usize,
    /// The bytes up to which more are kept.
    pub(crate) bytes: usize,
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
    /// Tells this start from one under the same number; not known of tasks that the worker took
    /// itself.
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub(crate) input: Box<RawValue>,
    /// Shared by all tasks of a claim that belong to one run.
    pub(crate) flow_input: Option<Arc<RawValue>>,
}

/// A message that no worker of this flow may take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedMessage {
    /// The queue that the message lies in.
    pub queue_name: String,
    /// The message's id in that queue.
    pub message_id: i64,
    /// The reason why it can't be taken.
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
    keep: Keep,
) -> Result<Claim, CallError> {
    // Row by row: all of them together would be a second copy of all inputs.
    let mut rows = sqlx::query(
        "select outcome, run_id, step_slug, task_index, attempt, max_attempts, timeout, message_id, \
                read_count, enqueued_at, started_at, input, flow_input, queue_name, reason \
         from pgflow.claim_tasks(worker_id => $1, max_tasks => $2)",
    )
    .bind(worker_id)
    .bind(max_tasks)
    .fetch(executor);

    let mut claimed = Claiming::new(keep);
    let mut unsupported = Vec::new();
    while let Some(row) = rows.try_next().await? {
        if row.try_get::<&str, _>("outcome")? == "claimed" {
            claimed.add(&row)?;
        } else {
            unsupported.push(offender(&row)?);
        }
    }
    Ok(if unsupported.is_empty() {
        Claim::Tasks(claimed.tasks)
    } else {
        Claim::Unsupported(unsupported)
    })
}

/// The same where an ordinary claim failed, and would fail again. Tasks whose input can't be read
/// or printed are handed out with the reason in its place, so that their attempts fail, and no
/// others.
pub(crate) async fn claim_tasks_carefully(
    connection: &mut PgConnection,
    worker_id: Uuid,
    max_tasks: i32,
    keep: Keep,
) -> Result<Claim, CallError> {
    let mut transaction = connection.begin().await?;
    sqlx::query("select pg_catalog.set_config('pgflow.careful_claims', 'on', true)")
        .execute(&mut *transaction)
        .await?;
    let claim = claim_tasks(&mut *transaction, worker_id, max_tasks, keep).await?;
    transaction.commit().await?;
    Ok(claim)
}

/// The tasks of a claim, as their rows arrive.
struct Claiming {
    keep: Keep,
    tasks: ClaimedTasks,
    /// By run: the database sends it with the first task of the run that takes it.
    flow_inputs: HashMap<Uuid, Arc<RawValue>>,
}

impl Claiming {
    fn new(keep: Keep) -> Self {
        Self {
            keep,
            tasks: ClaimedTasks::default(),
            flow_inputs: HashMap::new(),
        }
    }

    fn add(&mut self, row: &PgRow) -> Result<(), sqlx::Error> {
        let run_id: Uuid = row.try_get("run_id")?;
        // Borrowed: a task that is not kept costs no copy.
        let input: Option<Json<&RawValue>> = row.try_get("input")?;
        let flow_input: Option<Json<&RawValue>> = row.try_get("flow_input")?;
        let size =
            |json: &Option<Json<&RawValue>>| json.as_ref().map_or(0, |json| json.get().len());
        let bytes = self.tasks.bytes + size(&input) + size(&flow_input);
        let is_kept = self.tasks.tasks.len() < self.keep.tasks
            || (self.tasks.excess.is_empty() && bytes <= self.keep.bytes);
        if !is_kept {
            // The rest goes back as well: a later one may take an input that came with this one.
            let task = task(row, run_id, RawValue::NULL.to_owned(), None)?;
            self.tasks.excess.push(task);
            return Ok(());
        }
        if let Some(Json(json)) = flow_input {
            self.flow_inputs.insert(run_id, Arc::from(json.to_owned()));
        }
        let input = input.map_or(RawValue::NULL, |Json(json)| json).to_owned();
        let flow_input = self.flow_inputs.get(&run_id).cloned();
        self.tasks.tasks.push(task(row, run_id, input, flow_input)?);
        self.tasks.bytes = bytes;
        Ok(())
    }
}

fn task(
    row: &PgRow,
    run_id: Uuid,
    input: Box<RawValue>,
    flow_input: Option<Arc<RawValue>>,
) -> Result<ClaimedTask, sqlx::Error> {
    let timeout: i32 = row.try_get("timeout")?;
    Ok(ClaimedTask {
        run_id,
        step_slug: row.try_get("step_slug")?,
        task_index: row.try_get("task_index")?,
        attempt: row.try_get("attempt")?,
        max_attempts: row.try_get("max_attempts")?,
        timeout: Duration::from_secs(timeout.unsigned_abs().into()),
        message_id: row.try_get("message_id")?,
        read_count: row.try_get("read_count")?,
        enqueued_at: row.try_get("enqueued_at")?,
        started_at: row.try_get("started_at")?,
        input,
        flow_input,
    })
}

fn offender(row: &PgRow) -> Result<UnsupportedMessage, sqlx::Error> {
    Ok(UnsupportedMessage {
        queue_name: row.try_get("queue_name")?,
        message_id: row.try_get("message_id")?,
        reason: row.try_get("reason")?,
    })
}
