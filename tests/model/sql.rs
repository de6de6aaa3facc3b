//! The calls on the database.

use std::fmt;

use serde_json::Value;
use sqlx::postgres::{PgConnection, PgDatabaseError, PgRow};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use super::call::{Answer, Call, ClaimedRow, Completion, Failure, TaskKey};
use super::flow::Flow;
use super::setup::{FLOW, queue_name, worker_id};
use super::snapshot::{run_number, step_place};
use super::state::Model;

/// The database's address of a task's key; a key that does not exist in the model does not exist
/// there.
#[derive(Debug, Default)]
struct Addresses {
    run_ids: Vec<Uuid>,
    slugs: Vec<String>,
    indexes: Vec<i32>,
}

impl Addresses {
    fn of(model: &Model, keys: impl Iterator<Item = TaskKey>) -> Self {
        let mut addresses = Self::default();
        for key in keys {
            let unknown = Uuid::from_u64_pair(0, key.run as u64);
            let run = model.runs.get(key.run);
            addresses.run_ids.push(run.map_or(unknown, |run| run.id));
            let step = model.flow.steps.get(key.step);
            addresses
                .slugs
                .push(step.map_or("unknown".to_owned(), |step| step.slug.clone()));
            addresses
                .indexes
                .push(i32::try_from(key.index).expect("a small number"));
        }
        addresses
    }

    fn one(model: &Model, key: TaskKey) -> (Uuid, String, i32) {
        let mut one = Self::of(model, std::iter::once(key));
        (
            one.run_ids.remove(0),
            one.slugs.remove(0),
            one.indexes.remove(0),
        )
    }
}

/// Does a call on the database. `model` is as it was before the call.
pub(crate) async fn call(
    connection: &mut PgConnection,
    model: &Model,
    call: &Call,
    next_run: Uuid,
) -> Result<Answer, String> {
    let answer = match call {
        Call::Start { input } => start(connection, input, next_run).await,
        Call::StartAgain { run, input } => start(connection, input, model.runs[*run].id).await,
        Call::Claim { worker, max } => claim(connection, &model.flow, *worker, *max).await,
        Call::Complete(items) => complete_batch(connection, model, items).await,
        Call::CompleteOne(item) => complete(connection, model, item).await,
        Call::Fail(failure) => fail(connection, model, failure).await,
        Call::Release { worker, tasks } => release(connection, model, *worker, tasks).await,
        Call::Recover => sqlx::query_scalar("select pgflow.requeue_stalled_tasks()")
            .fetch_one(connection)
            .await
            .map(Answer::Count),
        Call::Postpone {
            task,
            attempt,
            cause,
            delay,
            too_long,
        } => {
            let to = Addresses::one(model, *task);
            postpone(connection, to, *attempt, cause, *delay, *too_long).await
        }
        Call::Lose { worker } => lose(connection, *worker).await,
        Call::Age { tasks, seconds } => age(connection, model, tasks, *seconds).await,
        Call::Show { tasks } => show(connection, model, tasks).await,
    };
    answer.or_else(|error| {
        let code = error
            .as_database_error()
            .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
            .map(|error| error.code().to_owned());
        match code {
            Some(code) if code.starts_with("PF") && !is_broken(&code) => Ok(Answer::Refused(code)),
            _ => Err(format!("the call failed: {}", Explained(&error))),
        }
    })
}

/// Rows that contradict each other are no refusal.
fn is_broken(code: &str) -> bool {
    matches!(code, "PF008" | "PF012")
}

struct Explained<'a>(&'a sqlx::Error);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let error = self.0.as_database_error();
        let error = error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        error
            .and_then(|error| error.r#where())
            .map_or(Ok(()), |place| {
                write!(f, " (at {})", place.replace('\n', "; "))
            })
    }
}

async fn start(connection: &mut PgConnection, input: &Value, id: Uuid) -> sqlx::Result<Answer> {
    sqlx::query_scalar("select status from pgflow.start_flow($1, $2, $3)")
        .bind(FLOW)
        .bind(input)
        .bind(id)
        .fetch_one(connection)
        .await
        .map(Answer::Run)
}

async fn claim(
    connection: &mut PgConnection,
    flow: &Flow,
    worker: usize,
    max: usize,
) -> sqlx::Result<Answer> {
    let rows = sqlx::query("select * from pgflow.claim_tasks($1, $2)")
        .bind(worker_id(worker))
        .bind(i32::try_from(max).expect("a small number"))
        .fetch_all(connection)
        .await?;
    let rows: sqlx::Result<Vec<ClaimedRow>> = rows.iter().map(|row| claimed(row, flow)).collect();
    rows.map(Answer::Claimed)
}

fn claimed(row: &PgRow, flow: &Flow) -> sqlx::Result<ClaimedRow> {
    let outcome: String = row.try_get("outcome")?;
    if outcome != "claimed" {
        let reason: Option<String> = row.try_get("reason")?;
        let what = format!("a claim answered {outcome}: {}", reason.unwrap_or_default());
        return Err(sqlx::Error::Decode(what.into()));
    }
    let slug: &str = row.try_get("step_slug")?;
    let index: i32 = row.try_get("task_index")?;
    let queue: &str = row.try_get("queue_name")?;
    let mut queues = flow.queues().into_iter();
    Ok(ClaimedRow {
        task: TaskKey {
            run: run_number(row.try_get("run_id")?),
            step: step_place(flow, slug).unwrap_or(usize::MAX),
            index: usize::try_from(index).unwrap_or(usize::MAX),
        },
        attempt: row.try_get("attempt")?,
        max_attempts: row.try_get("max_attempts")?,
        timeout: row.try_get("timeout")?,
        queue: queues
            .find(|&known| queue_name(known) == queue)
            .unwrap_or(usize::MAX),
        message: row.try_get("message_id")?,
        reads: row.try_get("read_count")?,
        input: row.try_get("input")?,
        flow_input: row.try_get("flow_input")?,
    })
}

async fn complete_batch(
    connection: &mut PgConnection,
    model: &Model,
    items: &[Completion],
) -> sqlx::Result<Answer> {
    let to = Addresses::of(model, items.iter().map(|item| item.task));
    let attempts: Vec<Option<i32>> = items.iter().map(|item| item.attempt).collect();
    let outputs: Vec<Option<&Value>> = items.iter().map(|item| item.output.as_ref()).collect();
    let rows: Vec<(i32, String, bool)> = sqlx::query_as(
        "select item, outcome, made_ready from pgflow.complete_tasks($1, $2, $3, $4, $5) order by item",
    )
    .bind(to.run_ids)
    .bind(to.slugs)
    .bind(to.indexes)
    .bind(attempts)
    .bind(outputs)
    .fetch_all(connection)
    .await?;
    let made_ready = rows.first().is_some_and(|&(.., made_ready)| made_ready);
    if rows.iter().zip(1..).any(|(&(item, ..), n)| item != n)
        || rows.iter().any(|&(.., each)| each != made_ready)
    {
        let what = format!("the items are answered by {rows:?}");
        return Err(sqlx::Error::Decode(what.into()));
    }
    Ok(Answer::Items {
        outcomes: rows.into_iter().map(|(_, outcome, _)| outcome).collect(),
        made_ready,
    })
}

async fn complete(
    connection: &mut PgConnection,
    model: &Model,
    item: &Completion,
) -> sqlx::Result<Answer> {
    let (run_id, slug, index) = Addresses::one(model, item.task);
    let (status, attempts) = sqlx::query_as(
        "select status, attempts_count from pgflow.complete_task($1, $2, $3, $4, attempt => $5)",
    )
    .bind(run_id)
    .bind(slug)
    .bind(index)
    .bind(&item.output)
    .bind(item.attempt)
    .fetch_one(connection)
    .await?;
    Ok(Answer::Task { status, attempts })
}

async fn fail(
    connection: &mut PgConnection,
    model: &Model,
    failure: &Failure,
) -> sqlx::Result<Answer> {
    let (run_id, slug, index) = Addresses::one(model, failure.task);
    let (status, attempts) = sqlx::query_as(
        "select status, attempts_count from pgflow.fail_task($1, $2, $3, $4, retry_delay => $5, attempt => $6, retryable => $7)",
    )
    .bind(run_id)
    .bind(slug)
    .bind(index)
    .bind(&failure.message)
    .bind(failure.retry_delay)
    .bind(failure.attempt)
    .bind(failure.retryable)
    .fetch_one(connection)
    .await?;
    Ok(Answer::Task { status, attempts })
}

async fn postpone(
    connection: &mut PgConnection,
    (run_id, slug, index): (Uuid, String, i32),
    attempt: Option<i32>,
    cause: &str,
    delay: i32,
    too_long: bool,
) -> sqlx::Result<Answer> {
    if too_long {
        sqlx::query(
            "update pgflow.step_tasks
             set postponed_count = greatest(postponed_count, 1), postponed_since = now() - interval '2 days'
             where run_id = $1 and step_slug = $2 and task_index = $3 and status = 'started'",
        )
        .bind(run_id)
        .bind(&slug)
        .bind(index)
        .execute(&mut *connection)
        .await?;
    }
    let (status, attempts) = sqlx::query_as(
        "select status, attempts_count from pgflow.postpone_task($1, $2, $3, $4, $5, attempt => $6)",
    )
    .bind(run_id)
    .bind(slug)
    .bind(index)
    .bind(cause)
    .bind(delay)
    .bind(attempt)
    .fetch_one(connection)
    .await?;
    Ok(Answer::Task { status, attempts })
}

/// It stops, and what it left is recovered; then it is there again, as a new one would be.
async fn lose(connection: &mut PgConnection, worker: usize) -> sqlx::Result<Answer> {
    sqlx::query(
        "with stopped as (
             update pgflow.workers set stopped_at = clock_timestamp() where worker_id = $1
         )
         update pgflow.claims set look_at = least(look_at, clock_timestamp()) where worker_id = $1",
    )
    .bind(worker_id(worker))
    .execute(&mut *connection)
    .await?;
    let requeued = sqlx::query_scalar("select pgflow.requeue_stalled_tasks()")
        .fetch_one(&mut *connection)
        .await?;
    sqlx::query(
        "update pgflow.workers
         set stopped_at = null, alone_queue = null, alone_message = null, alone_attempt = null, alone_since = null
         where worker_id = $1",
    )
    .bind(worker_id(worker))
    .execute(connection)
    .await?;
    Ok(Answer::Count(requeued))
}

async fn release(
    connection: &mut PgConnection,
    model: &Model,
    worker: usize,
    tasks: &[(TaskKey, i32)],
) -> sqlx::Result<Answer> {
    let to = Addresses::of(model, tasks.iter().map(|&(task, _)| task));
    let attempts: Vec<i32> = tasks.iter().map(|&(_, attempt)| attempt).collect();
    sqlx::query_scalar("select pgflow.release_tasks($1, $2, $3, $4, $5)")
        .bind(worker_id(worker))
        .bind(to.run_ids)
        .bind(to.slugs)
        .bind(to.indexes)
        .bind(attempts)
        .fetch_one(connection)
        .await
        .map(Answer::Count)
}

/// Started tasks look as if they had started this many seconds earlier.
async fn age(
    connection: &mut PgConnection,
    model: &Model,
    tasks: &[TaskKey],
    seconds: i32,
) -> sqlx::Result<Answer> {
    let to = Addresses::of(model, tasks.iter().copied());
    sqlx::query(
        "with claimed as (
             update pgflow.claims c set look_at = look_at - make_interval(secs => $4)
             where exists (
                 select from unnest(c.run_ids, c.step_slugs, c.task_indexes) i
                 where i in (select x from unnest($1, $2, $3) x)
             )
         )
         update pgflow.step_tasks t
         set queued_at = queued_at - make_interval(secs => $4), started_at = started_at - make_interval(secs => $4)
         from unnest($1, $2, $3) as x (run_id, step_slug, task_index)
         where t.run_id = x.run_id and t.step_slug = x.step_slug and t.task_index = x.task_index",
    )
    .bind(to.run_ids)
    .bind(to.slugs)
    .bind(to.indexes)
    .bind(seconds)
    .execute(connection)
    .await?;
    Ok(Answer::Done)
}

async fn show(
    connection: &mut PgConnection,
    model: &Model,
    tasks: &[TaskKey],
) -> sqlx::Result<Answer> {
    for queue in model.flow.queues() {
        let messages = tasks.iter().filter_map(|&key| model.task(key));
        let messages = messages.map(|task| &task.message);
        let ids: Vec<Option<i64>> = messages
            .filter(|message| message.queue == queue)
            .map(|message| message.id)
            .collect();
        if !ids.is_empty() {
            let query = format!(
                "update pgmq.q_{queue} q set vt = m.vt
                 from (
                     select id, statement_timestamp() + row_number() over (order by id) * interval '1 microsecond' as vt
                     from unnest($1::bigint[]) id
                 ) m
                 where q.msg_id = m.id",
                queue = queue_name(queue)
            );
            sqlx::query(AssertSqlSafe(query))
                .bind(ids)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(Answer::Done)
}
