//! The sequences of `docs/rollout.md`, while callers never stop to start runs: no run fails, no
//! attempt is lost, old and new code do not mix.

mod plain;
mod processes;
mod queues;
mod race;
mod versions;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgflow::client::{Client, RunHandle};
use pgflow::prelude::*;
use sqlx::types::chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, FromRow, PgPool};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::DEADLINE;
use crate::support::eventually;

/// The interval at which callers start a run, and supervisors a process.
const PACE: Duration = Duration::from_millis(25);
/// The item that is held at a gate.
const HELD: u32 = 1_000;
const POLL: Duration = Duration::from_millis(20);

/// A handler that ran, of which build.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ran {
    build: &'static str,
    run_id: Uuid,
    step: &'static str,
    index: i32,
}

/// The effects of the handlers of all builds.
#[derive(Debug, Clone)]
struct Effects {
    ran: Arc<Mutex<Vec<Ran>>>,
    gate: Arc<Semaphore>,
}

impl Effects {
    fn new() -> Self {
        Self {
            ran: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    /// Executes a handler.
    async fn run(&self, build: &'static str, ctx: &StepContext, item: Option<u32>) -> String {
        let ran = Ran {
            build,
            run_id: ctx.run_id(),
            step: ctx.step_slug(),
            index: ctx.task_index(),
        };
        self.ran.lock().expect("no panic while noting").push(ran);
        if item == Some(HELD) {
            let permit = self.gate.acquire().await;
            permit.expect("the gate is never removed").forget();
        }
        build.to_owned()
    }

    fn let_go(&self) {
        self.gate.add_permits(1);
    }

    fn all(&self) -> Vec<Ran> {
        self.ran.lock().expect("no panic while noting").clone()
    }

    fn of(&self, build: &str) -> Vec<Ran> {
        let mut ran = self.all();
        ran.retain(|ran| ran.build == build);
        ran
    }

    /// Waits until handlers of the build run, for a run that started after this was called or
    /// before.
    async fn until_runs(&self, build: &str, run_id: Uuid) {
        let what = format!("{build} runs a task of run {run_id}");
        eventually(DEADLINE, what, async || {
            self.of(build)
                .iter()
                .any(|ran| ran.run_id == run_id)
                .then_some(())
        })
        .await;
    }
}

/// Callers: they start runs from now on until they are asked to stop.
struct Callers<F: Flow> {
    stop: CancellationToken,
    task: JoinHandle<Vec<RunHandle<F>>>,
}

impl<F: Flow<Input = Vec<u32>>> Callers<F> {
    fn start(pool: &PgPool) -> Self {
        let stop = CancellationToken::new();
        let (client, stopped) = (Client::new(pool.clone()), stop.clone());
        let task = tokio::spawn(async move {
            let mut runs = Vec::new();
            let mut pace = interval(PACE);
            while stopped.run_until_cancelled(pace.tick()).await.is_some() {
                runs.push(client.start::<F>(&vec![1, 2]).await.unwrap());
            }
            runs
        });
        Self { stop, task }
    }

    /// The runs that they have started.
    async fn stop(self) -> Vec<RunHandle<F>> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

/// Fails the test when one of the runs does.
async fn assert_complete<F: Flow>(runs: Vec<RunHandle<F>>) {
    for run in runs {
        run.wait().timeout(DEADLINE).await.unwrap();
    }
}

/// The functions as operators name them.
fn names(functions: &[&str]) -> Vec<String> {
    functions.iter().map(|&name| name.to_owned()).collect()
}

/// A row of `worker_functions`, as far as a fence changes it.
#[derive(Debug, Clone, PartialEq, FromRow)]
struct Function {
    name: String,
    enabled: bool,
    disabled_at: Option<DateTime<Utc>>,
    disabled_reason: Option<String>,
    fenced_at: Option<DateTime<Utc>>,
    recorded_enabled: Option<bool>,
}

const FUNCTION: &str =
    "function_name as name, enabled, disabled_at, disabled_reason, fenced_at, recorded_enabled";

async fn function(pool: &PgPool, name: &str) -> Function {
    let query = format!("select {FUNCTION} from pgflow.worker_functions where function_name = $1");
    sqlx::query_as(AssertSqlSafe(query))
        .bind(name)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn fence(pool: &PgPool, functions: &[String]) -> Vec<Function> {
    let query = format!("select {FUNCTION} from pgflow.fence_worker_functions($1, 'release 2')");
    sqlx::query_as(AssertSqlSafe(query))
        .bind(functions)
        .fetch_all(pool)
        .await
        .unwrap()
}

async fn unfence(pool: &PgPool, functions: &[String]) -> Vec<Function> {
    let query = format!("select {FUNCTION} from pgflow.unfence_worker_functions($1)");
    sqlx::query_as(AssertSqlSafe(query))
        .bind(functions)
        .fetch_all(pool)
        .await
        .unwrap()
}

/// The workers that a drain waits for, as `state, started tasks`.
async fn undrained(pool: &PgPool, functions: &[String]) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select state, started_tasks from pgflow.worker_status
         where function_name = any ($1) and (state in ('running', 'draining') or started_tasks > 0)
         order by state, started_tasks",
    )
    .bind(functions)
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn until_drained(pool: &PgPool, functions: &[String]) {
    eventually(DEADLINE, "the old workers have drained", async || {
        undrained(pool, functions).await.is_empty().then_some(())
    })
    .await;
}

async fn clock(pool: &PgPool) -> DateTime<Utc> {
    sqlx::query_scalar("select clock_timestamp()")
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Waits until each function has a worker that takes work and started after that time.
async fn until_healthy(pool: &PgPool, functions: &[String], since: DateTime<Utc>) {
    let what = format!("new workers of {functions:?}");
    eventually(DEADLINE, what, async || {
        let missing: Vec<String> = sqlx::query_scalar(
            "select f from unnest($1::text[]) f
             where not exists (
                 select from pgflow.live_workers w
                 where w.function_name = f and w.deprecated_at is null and w.started_at > $2
             )",
        )
        .bind(functions)
        .bind(since)
        .fetch_all(pool)
        .await
        .unwrap();
        missing.is_empty().then_some(())
    })
    .await;
}

/// The queues without a worker in which something waits.
async fn uncovered(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "select queue_name from pgflow.coverage where not is_covered and waiting_messages > 0 order by 1",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// Fails the test unless each task ended at its first attempt that counts, and its handler ran
/// exactly once.
async fn assert_nothing_was_repeated(pool: &PgPool, effects: &Effects) {
    let odd: Vec<(Uuid, String, i32, String, i32)> = sqlx::query_as(
        "select run_id, step_slug, task_index, status, attempts_count - uncounted_attempts
         from pgflow.step_tasks
         where status <> 'completed' or attempts_count - uncounted_attempts <> 1 or requeued_count <> 0",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    assert_eq!(odd, []);
    let tasks: i64 = sqlx::query_scalar("select count(*) from pgflow.step_tasks")
        .fetch_one(pool)
        .await
        .unwrap();
    let mut ran = effects.all();
    assert_eq!(i64::try_from(ran.len()), Ok(tasks));
    ran.sort_by_key(|ran| (ran.run_id, ran.step, ran.index));
    ran.dedup_by_key(|ran| (ran.run_id, ran.step, ran.index));
    assert_eq!(i64::try_from(ran.len()), Ok(tasks), "a handler ran twice");
}
