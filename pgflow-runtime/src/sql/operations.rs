//! Worker functions and their workers, as operators see and change them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgExecutor};
use uuid::Uuid;

use super::{CallError, coverage, testing};
use crate::operations::{
    ArchivedMessage, BusyWorker, Cleared, DrainStatus, Fence, FunctionChange, FunctionStatus,
    RestartStatus, Tuning, UnsupportedMessage, WorkerFunction, WorkerStatus,
};

const FUNCTION: &str = "function_name, start_mode, enabled, disabled_at, disabled_reason, fenced_at, recorded_enabled, \
     recorded_disabled_at, recorded_disabled_reason, http_url, last_invoked_at";

const WORKER: &str = "worker_id, function_name, flow_slug, step_slug, queue_name, state, started_tasks, started_at, \
     last_heartbeat_at, deprecated_at, deprecated_reason, stopped_at, build";

const SNAPSHOT: &str = "begin transaction isolation level repeatable read, read only";

/// The role's own default could be serializable.
const CHANGE: &str = "begin transaction isolation level read committed";

/// Builds the query for the functions of each flow, by three signs: a live worker, the function's
/// newest worker, the last worker of a queue. The function of tests is excluded.
fn members() -> String {
    format!(
        "select * from ( \
             select live.function_name, live.flow_slug from pgflow.live_workers live \
             union \
             (select distinct on (w.function_name) w.function_name, w.flow_slug from pgflow.workers w \
              order by w.function_name, w.started_at desc, w.worker_id desc) \
             union \
             (select distinct on (w.flow_slug, w.queue_name) w.function_name, w.flow_slug from pgflow.workers w \
              where w.function_name <> '{testing}' \
                  and exists (select from pgflow.steps s where s.flow_slug = w.flow_slug and s.queue_name = w.queue_name) \
              order by w.flow_slug, w.queue_name, w.started_at desc, w.worker_id desc) \
         ) member where member.function_name <> '{testing}'",
        testing = testing::FUNCTION
    )
}

pub(crate) async fn read_functions(
    executor: impl PgExecutor<'_>,
) -> Result<Vec<WorkerFunction>, CallError> {
    let query = format!("select {FUNCTION} from pgflow.worker_functions order by function_name");
    Ok(sqlx::query_as(AssertSqlSafe(query))
        .fetch_all(executor)
        .await?)
}

pub(crate) async fn read_functions_of_flow(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
) -> Result<Vec<String>, CallError> {
    // A worker's row may outlive its function's.
    let query = format!(
        "select f.function_name from pgflow.worker_functions f \
         join ({}) member on member.function_name = f.function_name \
         where member.flow_slug = $1 order by f.function_name",
        members()
    );
    Ok(sqlx::query_scalar(AssertSqlSafe(query))
        .bind(flow_slug)
        .fetch_all(executor)
        .await?)
}

/// The functions and their workers as they are at one moment.
pub(crate) async fn list(
    connection: &mut PgConnection,
    function_names: Option<&[String]>,
    with_stopped: bool,
) -> Result<Vec<FunctionStatus>, CallError> {
    let mut transaction = connection.begin_with(SNAPSHOT).await?;
    let query = format!(
        "select {FUNCTION} from pgflow.worker_functions \
         where $1::text[] is null or function_name = any ($1) order by function_name"
    );
    let functions: Vec<WorkerFunction> = sqlx::query_as(AssertSqlSafe(query))
        .bind(function_names)
        .fetch_all(&mut *transaction)
        .await?;
    let query = format!(
        "select {WORKER} from pgflow.worker_status \
         where ($1::text[] is null or function_name = any ($1)) and ($2 or stopped_at is null) \
         order by function_name, started_at desc, worker_id desc"
    );
    let workers: Vec<WorkerStatus> = sqlx::query_as(AssertSqlSafe(query))
        .bind(function_names)
        .bind(with_stopped)
        .fetch_all(&mut *transaction)
        .await?;
    transaction.rollback().await?;
    let mut by_function: HashMap<String, Vec<WorkerStatus>> = HashMap::new();
    for worker in workers {
        let own = by_function.entry(worker.function_name.clone()).or_default();
        own.push(worker);
    }
    let with_workers = |function: WorkerFunction| FunctionStatus {
        workers: by_function
            .remove(&function.function_name)
            .unwrap_or_default(),
        function,
    };
    Ok(functions.into_iter().map(with_workers).collect())
}

/// A call that changes worker functions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call<'a> {
    Unfence,
    Enable,
    Disable { reason: Option<&'a str> },
}

/// All of it in one transaction.
pub(crate) async fn change(
    connection: &mut PgConnection,
    function_names: &[String],
    call: Call<'_>,
) -> Result<Vec<FunctionChange>, CallError> {
    let mut transaction = connection.begin_with(CHANGE).await?;
    let before = lock_functions(&mut transaction, function_names).await?;
    let changed = match call {
        Call::Unfence => "pgflow.unfence_worker_functions(function_names => $1)",
        Call::Enable => {
            "unnest($1) name cross join lateral pgflow.enable_worker_function(function_name => name)"
        }
        Call::Disable { .. } => {
            "unnest($1) name cross join lateral pgflow.disable_worker_function(function_name => name, reason => $2)"
        }
    };
    let query = format!("select {FUNCTION} from {changed} order by function_name");
    let mut query = sqlx::query_as(AssertSqlSafe(query)).bind(function_names);
    if let Call::Disable { reason } = call {
        query = query.bind(reason);
    }
    let after = query.fetch_all(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(changes(before, after))
}

pub(crate) async fn fence(
    connection: &mut PgConnection,
    function_names: &[String],
    reason: Option<&str>,
) -> Result<Fence, CallError> {
    let mut transaction = connection.begin_with(CHANGE).await?;
    let before = lock_functions(&mut transaction, function_names).await?;
    let since: DateTime<Utc> = sqlx::query_scalar("select clock_timestamp()")
        .fetch_one(&mut *transaction)
        .await?;
    let query = format!(
        "select {FUNCTION} from pgflow.fence_worker_functions(function_names => $1, reason => $2)"
    );
    let after = sqlx::query_as(AssertSqlSafe(query))
        .bind(function_names)
        .bind(reason)
        .fetch_all(&mut *transaction)
        .await?;
    // Since then nobody else fences the functions or drains them: they are locked.
    let query = format!(
        "select {WORKER} from pgflow.worker_status \
         where function_name = any ($1) and stopped_at is null and deprecated_at >= $2 \
         order by function_name, started_at desc, worker_id desc"
    );
    let told_to_stop = sqlx::query_as(AssertSqlSafe(query))
        .bind(function_names)
        .bind(since)
        .fetch_all(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(Fence {
        functions: changes(before, after),
        told_to_stop,
    })
}

pub(crate) async fn unsupported_messages(
    connection: &mut PgConnection,
    queue_name: Option<&str>,
    with_body: bool,
) -> Result<Vec<UnsupportedMessage>, CallError> {
    Ok(sqlx::query_as(
        "select queue_name, message_id, enqueued_at, visible_at, read_count, has_task, reason, \
             case when $2 then body end as body \
         from pgflow.unsupported_messages(in_queue => $1)",
    )
    .bind(queue_name)
    .bind(with_body)
    .fetch_all(connection)
    .await?)
}

/// All of it in one transaction, or nothing when a message has to stay.
pub(crate) async fn enable_archiving(
    connection: &mut PgConnection,
    function_names: &[String],
) -> Result<Cleared, CallError> {
    let mut transaction = connection.begin_with(CHANGE).await?;
    let before = lock_functions(&mut transaction, function_names).await?;
    let messages: Vec<ArchivedMessage> = sqlx::query_as(
        "select m.queue_name, m.message_id, m.reason, m.archived \
         from unnest($1) name cross join lateral pgflow.archive_unsupported_messages(function_name => name) m",
    )
    .bind(function_names)
    .fetch_all(&mut *transaction)
    .await?;
    let (archived, kept): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| message.archived);
    if !kept.is_empty() {
        transaction.rollback().await?;
        return Ok(Cleared {
            functions: Vec::new(),
            archived: Vec::new(),
            kept,
        });
    }
    let after = enable(&mut transaction, function_names).await?;
    transaction.commit().await?;
    Ok(Cleared {
        functions: changes(before, after),
        archived,
        kept,
    })
}

async fn enable(
    connection: &mut PgConnection,
    function_names: &[String],
) -> Result<Vec<WorkerFunction>, CallError> {
    let query = format!(
        "select {FUNCTION} from unnest($1) name \
         cross join lateral pgflow.enable_worker_function(function_name => name) order by function_name"
    );
    Ok(sqlx::query_as(AssertSqlSafe(query))
        .bind(function_names)
        .fetch_all(connection)
        .await?)
}

pub(crate) async fn tune(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
    step_slug: Option<&str>,
    tuning: Tuning,
) -> Result<(), CallError> {
    // What does not fit is out of bounds anyway, but must not become another value.
    let number = |value: Option<u32>| value.map(|value| i32::try_from(value).unwrap_or(i32::MAX));
    sqlx::query(
        "select pgflow.tune_flow(flow_slug => $1, step_slug => $2, max_attempts => $3, base_delay => $4, \
             timeout => $5, start_delay => $6, max_delay => $7, give_up_after => $8)",
    )
    .bind(flow_slug)
    .bind(step_slug)
    .bind(number(tuning.max_attempts))
    .bind(number(tuning.base_delay))
    .bind(number(tuning.timeout))
    .bind(number(tuning.start_delay))
    .bind(number(tuning.max_delay))
    .bind(number(tuning.give_up_after))
    .execute(executor)
    .await?;
    Ok(())
}

pub(crate) async fn deprecate(
    connection: &mut PgConnection,
    function_names: &[String],
    reason: Option<&str>,
) -> Result<Vec<Uuid>, CallError> {
    let mut transaction = connection.begin_with(CHANGE).await?;
    let told = sqlx::query_scalar(
        "select told from pgflow.deprecate_workers(function_names => $1, reason => $2) told order by told",
    )
    .bind(function_names)
    .bind(reason)
    .fetch_all(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(told)
}

pub(crate) async fn drain_status(
    connection: &mut PgConnection,
    function_names: &[String],
) -> Result<DrainStatus, CallError> {
    let mut transaction = connection.begin_with(SNAPSHOT).await?;
    // Recovery judges tasks by the same time.
    let query = format!(
        "select {WORKER}, \
             case \
                 when worker.state = 'lost' then least( \
                     tasks.overdue_at, \
                     worker.last_heartbeat_at + (select installation.lost_after from pgflow.installation installation) \
                 ) \
                 else tasks.overdue_at \
             end as tasks_overdue_at \
         from pgflow.worker_status worker \
         left join ( \
             select task.last_worker_id, \
                 max(task.started_at + make_interval(secs => options.timeout::float8 + 30)) as overdue_at \
             from pgflow.started_tasks task \
             join pgflow.step_options options on options.flow_slug = task.flow_slug and options.step_slug = task.step_slug \
             group by task.last_worker_id \
         ) tasks on tasks.last_worker_id = worker.worker_id \
         where worker.function_name = any ($1) and (worker.state in ('running', 'draining') or worker.started_tasks > 0) \
         order by worker.function_name, worker.started_at, worker.worker_id"
    );
    let waiting_for: Vec<BusyWorker> = sqlx::query_as(AssertSqlSafe(query))
        .bind(function_names)
        .fetch_all(&mut *transaction)
        .await?;
    let enabled_functions = sqlx::query_scalar(
        "select function_name from pgflow.worker_functions where function_name = any ($1) and enabled order by function_name",
    )
    .bind(function_names)
    .fetch_all(&mut *transaction)
    .await?;
    transaction.rollback().await?;
    Ok(DrainStatus {
        waiting_for,
        enabled_functions,
    })
}

pub(crate) async fn restart_status(
    connection: &mut PgConnection,
    function_names: &[String],
) -> Result<RestartStatus, CallError> {
    let mut transaction = connection.begin_with(SNAPSHOT).await?;
    let without_worker = sqlx::query_scalar(
        "select name from (select distinct unnest($1::text[]) as name) named \
         where not exists (select from pgflow.live_workers live where live.function_name = name and live.deprecated_at is null) \
         order by name",
    )
    .bind(function_names)
    .fetch_all(&mut *transaction)
    .await?;
    let query = format!(
        "select distinct member.flow_slug from ({}) member where member.function_name = any ($1)",
        members()
    );
    let flows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(query))
        .bind(function_names)
        .fetch_all(&mut *transaction)
        .await?;
    let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
    let uncovered = coverage::uncovered_steps(&mut *transaction, &flows).await?;
    transaction.rollback().await?;
    Ok(RestartStatus {
        without_worker,
        uncovered,
    })
}

/// The functions as they are; no other session changes them before the end of the transaction. In
/// the order in which the database locks them.
async fn lock_functions(
    connection: &mut PgConnection,
    function_names: &[String],
) -> Result<Vec<WorkerFunction>, CallError> {
    let query = format!(
        "select {FUNCTION} from pgflow.worker_functions where function_name = any ($1) \
         order by function_name for no key update"
    );
    Ok(sqlx::query_as(AssertSqlSafe(query))
        .bind(function_names)
        .fetch_all(connection)
        .await?)
}

fn changes(before: Vec<WorkerFunction>, after: Vec<WorkerFunction>) -> Vec<FunctionChange> {
    let mut before: HashMap<String, WorkerFunction> = before
        .into_iter()
        .map(|function| (function.function_name.clone(), function))
        .collect();
    let pair = |after: WorkerFunction| {
        let before = before.remove(&after.function_name)?;
        Some(FunctionChange { before, after })
    };
    after.into_iter().filter_map(pair).collect()
}
