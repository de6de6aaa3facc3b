//! Workers against a real database: how they start, run, fail, and stop.

mod branches;
mod connections;
mod failures;
mod fatal;
mod happy;
mod logs;
mod probe;
mod shared_queue;
mod shutdown;
mod start;

use std::time::Duration;

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

/// What a task's row says that tests ask for.
#[derive(Debug, PartialEq, Eq)]
struct TaskRow {
    status: String,
    attempts: i32,
    error_message: Option<String>,
}

async fn task(pool: &PgPool, run_id: Uuid, step: impl StepId) -> TaskRow {
    let (status, attempts, error_message) = sqlx::query_as(
        "select status, attempts_count, error_message from pgflow.step_tasks \
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

/// Whether the worker's row says that it has stopped.
async fn is_marked_stopped(pool: &PgPool, worker_id: Uuid) -> bool {
    sqlx::query_scalar("select stopped_at is not null from pgflow.workers where worker_id = $1")
        .bind(worker_id)
        .fetch_one(pool)
        .await
        .expect("the worker's row exists")
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
