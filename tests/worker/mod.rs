//! Workers against a real database: how they start, run, fail, and stop.

mod backends;
mod branches;
mod builds;
mod cancellation;
pub(crate) mod capture;
mod connections;
mod elements;
mod end_steps;
mod failures;
mod fatal;
mod functions;
mod happy;
mod health;
mod heartbeat;
mod idle;
mod lease;
mod logs;
mod lost_claims;
mod memory;
mod outage;
mod poison;
pub(crate) mod probe;
mod process;
mod protocol;
mod recompilation;
mod recording;
mod refused;
mod rollout;
mod secrets;
mod service;
mod shared_queue;
mod shutdown;
mod shutdown_under_load;
mod spoiled;
mod start;
mod step_queues;
mod values;
mod wakeups;
mod workers;

use std::{process::Command, time::Duration};

use pgflow::prelude::*;
use pgflow::{
    OneQueue,
    worker::{FlowWorker, WorkerHandle},
};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use uuid::Uuid;

use crate::support::eventually;

/// Nothing that a test waits for takes nearly as long.
const DEADLINE: Duration = Duration::from_secs(20);

/// A worker that looks often, so that tests need not wait for its poll interval.
fn worker<F>(state: F::State) -> FlowWorker<F>
where
    F: Flow<Queues = OneQueue>,
{
    FlowWorker::<F>::with_state(state).poll_interval(Duration::from_millis(20))
}

async fn start<F>(pool: &PgPool, state: F::State) -> WorkerHandle
where
    F: Flow<Queues = OneQueue>,
{
    worker::<F>(state)
        .start(pool)
        .await
        .expect("the worker starts")
}

/// Stores the flow's definition: a worker of it starts, and stops.
async fn define<F>(pool: &PgPool, state: F::State)
where
    F: Flow<Queues = OneQueue>,
{
    let worker = start::<F>(pool, state).await;
    worker.stop().await.expect("the worker stops");
}

/// Fails the test when the future takes longer than anything should.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(DEADLINE, future).await;
    result.expect("it does not take that long")
}

/// The columns of a task's row that tests read.
#[derive(Debug, PartialEq, Eq)]
struct TaskRow {
    status: String,
    /// Those that count.
    attempts: i32,
    error_message: Option<String>,
}

async fn task(pool: &PgPool, run_id: Uuid, step: impl StepId) -> TaskRow {
    let (status, attempts, error_message) = sqlx::query_as(
        "select status, attempts_count - uncounted_attempts, error_message from pgflow.step_tasks \
         where run_id = $1 and step_slug = $2 and task_index = 0",
    )
    .bind(run_id)
    .bind(step.slug())
    .fetch_one(pool)
    .await
    .expect("the task exists");
    TaskRow {
        status,
        attempts,
        error_message,
    }
}

async fn until_task_is(pool: &PgPool, run_id: Uuid, step: impl StepId, status: &str) {
    let what = format!("task {step:?} is {status}");
    eventually(DEADLINE, what, async || {
        (task(pool, run_id, step).await.status == status).then_some(())
    })
    .await;
}

/// Returns whether the worker's row says that it has stopped.
async fn is_marked_stopped(pool: &PgPool, worker_id: Uuid) -> bool {
    sqlx::query_scalar("select stopped_at is not null from pgflow.workers where worker_id = $1")
        .bind(worker_id)
        .fetch_one(pool)
        .await
        .expect("the worker's row exists")
}

async fn until_workers(pool: &PgPool, count: i64) {
    let what = format!("{count} workers are registered and not stopped");
    eventually(DEADLINE, what, async || {
        (running_workers(pool).await == count).then_some(())
    })
    .await;
}

/// Returns the number of workers that are registered and not stopped.
async fn running_workers(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from pgflow.workers where stopped_at is null")
        .fetch_one(pool)
        .await
        .expect("workers can be counted")
}

/// Every row of every table of pgflow and PGMQ, but for tables whose names contain one of `except`.
async fn all_rows(pool: &PgPool, except: &[&str]) -> String {
    sqlx::query_scalar(
        "select string_agg(format('%s: %s', c.oid::regclass, \
                 query_to_xml(format('select t::text as row from %s t order by 1', c.oid::regclass), true, false, '')), E'\n' \
                 order by c.oid::regclass::text) \
         from pg_class c \
         where c.relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace) and c.relkind in ('r', 'p') \
             and not exists (select from unnest($1::text[]) e where c.relname like '%' || e || '%')",
    )
    .bind(except)
    .fetch_one(pool)
    .await
    .expect("all tables can be read")
}

/// Signals reach every worker of the process that runs in the foreground: one test at a time may
/// send them.
static SIGNALS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn terminate_self() {
    let pid = std::process::id().to_string();
    let kill = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(kill.expect("kill can be run").success());
}

async fn run_sql(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await
        .expect("the statements run");
}

async fn make_local(pool: &PgPool) {
    run_sql(pool, "select pgflow.set_environment('local')").await;
}

/// Holds calls that need the table up until the transaction ends.
async fn lock_table(pool: &PgPool, table: &str) -> Transaction<'static, Postgres> {
    let mut transaction = pool.begin().await.expect("a connection");
    let lock = format!("lock table {table} in access exclusive mode");
    sqlx::raw_sql(AssertSqlSafe(lock))
        .execute(&mut *transaction)
        .await
        .expect("the table can be locked");
    transaction
}

async fn until_held_up(pool: &PgPool, function: &str) {
    eventually(DEADLINE, format!("a call of {function} is held up"), async || {
        let is_held_up: bool = sqlx::query_scalar(
            "select exists (select from pg_stat_activity where datname = current_database() \
             and wait_event_type = 'Lock' and query like '%' || $1 || '%' and pid <> pg_backend_pid())",
        )
        .bind(function)
        .fetch_one(pool)
        .await
        .expect("the activity can be read");
        is_held_up.then_some(())
    })
    .await;
}
