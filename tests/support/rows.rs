//! The contents of tables and queues, for the assertions of SQL tests.

use serde_json::Value;
use sqlx::postgres::{PgDatabaseError, PgPool, PgRow};
use sqlx::types::chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, FromRow, Row};
use uuid::Uuid;

/// The columns of `runs` that change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) status: String,
    pub(crate) remaining_steps: i32,
    pub(crate) output: Option<Value>,
    pub(crate) error_message: Option<String>,
}

/// The columns of `step_states` that change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepState {
    pub(crate) status: String,
    pub(crate) initial_tasks: Option<i32>,
    pub(crate) remaining_tasks: Option<i32>,
    pub(crate) remaining_deps: i32,
    pub(crate) output: Option<Value>,
    pub(crate) error_message: Option<String>,
    pub(crate) skip_reason: Option<String>,
}

/// The columns of `step_tasks` that change, and its message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) status: String,
    pub(crate) attempts_count: i32,
    pub(crate) message_id: Option<i64>,
    pub(crate) output: Option<Value>,
    pub(crate) error_message: Option<String>,
    pub(crate) last_worker_id: Option<Uuid>,
}

/// A message in a queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: i64,
    pub(crate) read_count: i32,
    pub(crate) enqueued_at: DateTime<Utc>,
    /// The time from which it can be read.
    pub(crate) visible_at: DateTime<Utc>,
    /// Seconds until then, rounded up; 0 when it can be read now.
    pub(crate) hidden_for: i32,
    pub(crate) body: Value,
}

impl Message {
    /// Whole seconds from a moment until it can be read: exact, however slow the test is.
    pub(crate) fn visible_after(&self, since: DateTime<Utc>) -> i64 {
        (self.visible_at - since).num_seconds()
    }
}

impl FromRow<'_, PgRow> for Run {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            status: row.try_get("status")?,
            remaining_steps: row.try_get("remaining_steps")?,
            output: row.try_get("output")?,
            error_message: row.try_get("error_message")?,
        })
    }
}

impl FromRow<'_, PgRow> for StepState {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            status: row.try_get("status")?,
            initial_tasks: row.try_get("initial_tasks")?,
            remaining_tasks: row.try_get("remaining_tasks")?,
            remaining_deps: row.try_get("remaining_deps")?,
            output: row.try_get("output")?,
            error_message: row.try_get("error_message")?,
            skip_reason: row.try_get("skip_reason")?,
        })
    }
}

impl FromRow<'_, PgRow> for Task {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            status: row.try_get("status")?,
            attempts_count: row.try_get("attempts_count")?,
            message_id: row.try_get("message_id")?,
            output: row.try_get("output")?,
            error_message: row.try_get("error_message")?,
            last_worker_id: row.try_get("last_worker_id")?,
        })
    }
}

impl FromRow<'_, PgRow> for Message {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            id: row.try_get("msg_id")?,
            read_count: row.try_get("read_ct")?,
            enqueued_at: row.try_get("enqueued_at")?,
            visible_at: row.try_get("vt")?,
            hidden_for: row.try_get("hidden_for")?,
            body: row.try_get("message")?,
        })
    }
}

pub(crate) async fn run(pool: &PgPool, run: Uuid) -> Run {
    sqlx::query_as("select * from pgflow.runs where run_id = $1")
        .bind(run)
        .fetch_one(pool)
        .await
        .expect("the run exists")
}

pub(crate) async fn step_state(pool: &PgPool, run: Uuid, step: &str) -> StepState {
    sqlx::query_as("select * from pgflow.step_states where run_id = $1 and step_slug = $2")
        .bind(run)
        .bind(step)
        .fetch_one(pool)
        .await
        .expect("the step's state exists")
}

/// The tasks of a step, by index.
pub(crate) async fn tasks(pool: &PgPool, run: Uuid, step: &str) -> Vec<Task> {
    sqlx::query_as(
        "select * from pgflow.step_tasks where run_id = $1 and step_slug = $2 order by task_index",
    )
    .bind(run)
    .bind(step)
    .fetch_all(pool)
    .await
    .expect("tasks can be read")
}

/// The one task of a single step.
pub(crate) async fn task(pool: &PgPool, run: Uuid, step: &str) -> Task {
    let mut tasks = tasks(pool, run, step).await;
    assert_eq!(tasks.len(), 1, "step {step} has one task");
    tasks.remove(0)
}

/// The messages that are in a queue, oldest first.
pub(crate) async fn messages(pool: &PgPool, queue: &str) -> Vec<Message> {
    let query = format!(
        "select msg_id, read_ct, enqueued_at, vt, message,
            greatest(0, ceil(extract(epoch from vt - clock_timestamp())))::int as hidden_for
         from pgmq.\"q_{queue}\" order by msg_id"
    );
    sqlx::query_as(AssertSqlSafe(query))
        .fetch_all(pool)
        .await
        .expect("the queue can be read")
}

/// The ids of the messages that were archived from a queue, in order.
pub(crate) async fn archived(pool: &PgPool, queue: &str) -> Vec<i64> {
    let query = format!("select msg_id from pgmq.\"a_{queue}\" order by msg_id");
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_all(pool)
        .await
        .expect("the archive can be read")
}

/// Makes every message of a queue visible now, as if its time had passed; the oldest have become
/// visible first.
pub(crate) async fn show_all(pool: &PgPool, queue: &str) {
    let query = format!(
        "update pgmq.\"q_{queue}\" q set vt = m.vt
         from (
             select msg_id, statement_timestamp() - interval '1 second' + row_number() over (order by msg_id) * interval '1 microsecond' as vt
             from pgmq.\"q_{queue}\"
         ) m
         where m.msg_id = q.msg_id"
    );
    sqlx::query(AssertSqlSafe(query))
        .execute(pool)
        .await
        .expect("the queue can be changed");
}

/// Returns the number of rows that a query counts.
pub(crate) async fn count(pool: &PgPool, table: &'static str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {table}")))
        .fetch_one(pool)
        .await
        .expect("rows can be counted")
}

/// The error that Postgres raised, as `SQLSTATE: message`.
#[track_caller]
pub(crate) fn raised<T: std::fmt::Debug>(result: sqlx::Result<T>) -> String {
    let error = result.expect_err("Postgres was to raise an error");
    let error = error.as_database_error().expect("Postgres raised it");
    let error = error.downcast_ref::<PgDatabaseError>();
    format!("{}: {}", error.code(), error.message())
}
