//! The calls that execute one run alone, without a worker that serves the queue: for tests of
//! flows.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use sqlx::{AssertSqlSafe, PgExecutor, Row, postgres::PgRow};
use uuid::Uuid;

use super::{CallError, RawJson, claim::ClaimedTask, definition::LiveWorker};

/// The worker function that tests of flows claim under. Nobody deploys it.
pub(crate) const FUNCTION: &str = "pgflow_testing";

/// A queued task whose message is in its queue, visible or not.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct WaitingTask {
    pub(crate) queue_name: String,
    pub(crate) message_id: i64,
    pub(crate) enqueued_at: DateTime<Utc>,
    /// The time at which a worker would see it.
    pub(crate) visible_at: DateTime<Utc>,
    /// `true` if it would see it now.
    pub(crate) is_due: bool,
}

/// The run's waiting tasks in these queues: first those that are due, in the order of their
/// messages, then the others, in the order in which they will be.
pub(crate) async fn waiting_tasks(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
    queues: &[&str],
    limit: usize,
) -> Result<Vec<WaitingTask>, CallError> {
    let of_queue = |queue: &&str| {
        format!(
            "select t.queue_name, t.message_id, q.enqueued_at, q.vt as visible_at, q.vt <= clock_timestamp() as is_due \
             from pgflow.step_tasks t \
             join pgmq.{} q on q.msg_id = t.message_id \
             where t.run_id = $1 and t.queue_name = '{}' and t.status = 'queued'",
            identifier(&format!("q_{queue}")),
            queue.replace('\'', "''"),
        )
    };
    let all: Vec<String> = queues.iter().map(of_queue).collect();
    let sql = format!(
        "select * from ({}) w \
         order by not is_due, case when is_due then enqueued_at else visible_at end, queue_name, message_id \
         limit $2",
        all.join(" union all ")
    );
    // Names of queues are made of slugs, and quoted besides.
    Ok(sqlx::query_as(AssertSqlSafe(sql))
        .bind(run_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(executor)
        .await?)
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Starts exactly these tasks, which wait in one queue, whether they are due or not. Omits those
/// that another worker has taken or that another session holds.
///
/// # Errors
///
/// `PF007` when the worker has stopped, `PF008` when a message was removed meanwhile.
pub(crate) async fn start_tasks(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
    flow_slug: &str,
    step_slug: Option<&str>,
    queue_name: &str,
    waiting: &[WaitingTask],
) -> Result<Vec<ClaimedTask>, CallError> {
    let enqueued_at: HashMap<i64, DateTime<Utc>> = waiting
        .iter()
        .map(|task| (task.message_id, task.enqueued_at))
        .collect();
    let message_ids: Vec<i64> = waiting.iter().map(|task| task.message_id).collect();
    let rows = sqlx::query(
        "select run_id, step_slug, task_index, attempt, max_attempts, timeout, msg_id, input, flow_input \
         from pgflow.start_tasks(flow_slug => $1, msg_ids => $2, worker_id => $3, queue_name => $4, step_slug => $5)",
    )
    .bind(flow_slug)
    .bind(message_ids)
    .bind(worker_id)
    .bind(queue_name)
    .bind(step_slug)
    .fetch_all(executor)
    .await?;
    // With one task of each run, for all of them.
    let mut flow_inputs = HashMap::new();
    for row in &rows {
        if let Some(json) = row.try_get::<Option<RawJson>, _>("flow_input")? {
            flow_inputs.insert(row.try_get("run_id")?, Arc::from(json.0));
        }
    }
    Ok(rows
        .iter()
        .map(|row| started(row, &enqueued_at, &flow_inputs))
        .collect::<Result<_, _>>()?)
}

fn started(
    row: &PgRow,
    enqueued_at: &HashMap<i64, DateTime<Utc>>,
    flow_inputs: &HashMap<Uuid, Arc<RawValue>>,
) -> Result<ClaimedTask, sqlx::Error> {
    let timeout: i32 = row.try_get("timeout")?;
    let run_id = row.try_get("run_id")?;
    let attempt = row.try_get("attempt")?;
    let message_id = row.try_get("msg_id")?;
    Ok(ClaimedTask {
        run_id,
        step_slug: row.try_get("step_slug")?,
        task_index: row.try_get("task_index")?,
        attempt,
        max_attempts: row.try_get("max_attempts")?,
        timeout: Duration::from_secs(timeout.unsigned_abs().into()),
        message_id,
        // A worker reads a message once for each attempt.
        read_count: attempt,
        enqueued_at: enqueued_at
            .get(&message_id)
            .copied()
            .ok_or(sqlx::Error::RowNotFound)?,
        started_at: None,
        input: row
            .try_get::<Option<RawJson>, _>("input")?
            .map_or_else(|| RawValue::NULL.to_owned(), |json| json.0),
        flow_input: flow_inputs.get(&run_id).cloned(),
    })
}

/// A task of a run, as its row is.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct TaskRow {
    pub(crate) step_slug: String,
    pub(crate) task_index: i32,
    pub(crate) status: String,
    pub(crate) attempts_count: i32,
    pub(crate) error_message: Option<String>,
}

/// All tasks of a run.
pub(crate) async fn tasks(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Vec<TaskRow>, CallError> {
    Ok(sqlx::query_as(
        "select step_slug, task_index, status, attempts_count, error_message from pgflow.step_tasks where run_id = $1",
    )
    .bind(run_id)
    .fetch_all(executor)
    .await?)
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It has not ended.
    Started,
    /// It has ended, and end steps of it have not.
    EndSteps,
    /// It has ended, and so have its end steps.
    Over,
}

/// Returns the progress of a run; None for an unknown run.
pub(crate) async fn progress(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Option<Progress>, CallError> {
    // A task that is active when a run has ended belongs to an end step.
    let row: Option<(bool, bool)> = sqlx::query_as(
        "select r.status <> 'started', \
                r.status <> 'started' and r.has_end_steps and exists ( \
                    select from pgflow.step_tasks t where t.run_id = r.run_id and t.status in ('queued', 'started') \
                ) \
         from pgflow.runs r where r.run_id = $1",
    )
    .bind(run_id)
    .fetch_optional(executor)
    .await?;
    Ok(row.map(|row| match row {
        (false, _) => Progress::Started,
        (true, true) => Progress::EndSteps,
        (true, false) => Progress::Over,
    }))
}

/// A run's status; None for an unknown run.
pub(crate) async fn run_status(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Option<String>, CallError> {
    Ok(
        sqlx::query_scalar("select status from pgflow.runs where run_id = $1")
            .bind(run_id)
            .fetch_optional(executor)
            .await?,
    )
}

/// A step of the run that has not ended, the first one of those that have tasks.
pub(crate) async fn unfinished_step(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Option<String>, CallError> {
    Ok(sqlx::query_scalar(
        "select state.step_slug from pgflow.step_states state \
         join pgflow.steps step on step.flow_slug = state.flow_slug and step.step_slug = state.step_slug \
         join pgflow.runs run on run.run_id = state.run_id \
         where state.run_id = $1 and state.status in ('created', 'started') \
             and (run.status = 'started' or step.runs_on is not null) \
         order by state.status desc, step.step_index limit 1",
    )
    .bind(run_id)
    .fetch_optional(executor)
    .await?)
}

/// The flow's live workers, except those of one function and those that were asked to stop.
pub(crate) async fn live_workers(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
    except_function: &str,
) -> Result<Vec<LiveWorker>, CallError> {
    let rows = sqlx::query(
        "select w.worker_id, w.function_name, w.step_slug, w.last_heartbeat_at, coalesce(t.started_tasks, 0) as started_tasks \
         from pgflow.live_workers w \
         left join ( \
             select k.last_worker_id, count(*) as started_tasks from pgflow.started_tasks k group by k.last_worker_id \
         ) t on t.last_worker_id = w.worker_id \
         where w.flow_slug = $1 and w.function_name <> $2 and w.deprecated_at is null \
         order by w.started_at, w.worker_id",
    )
    .bind(flow_slug)
    .bind(except_function)
    .fetch_all(executor)
    .await?;
    Ok(rows.iter().map(live_worker).collect::<Result<_, _>>()?)
}

fn live_worker(row: &PgRow) -> Result<LiveWorker, sqlx::Error> {
    let started_tasks: i64 = row.try_get("started_tasks")?;
    Ok(LiveWorker {
        worker_id: row.try_get("worker_id")?,
        function_name: row.try_get("function_name")?,
        step_slug: row.try_get("step_slug")?,
        last_heartbeat_at: row.try_get("last_heartbeat_at")?,
        started_tasks: started_tasks.unsigned_abs(),
    })
}
