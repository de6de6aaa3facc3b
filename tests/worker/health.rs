//! Handlers that block every thread of their runtime: the worker's life does not depend on them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::worker::WorkerHandle;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::runtime::Runtime;
use tracing::dispatcher;
use uuid::Uuid;

use super::backends::until_listening;
use super::{DEADLINE, capture::Capture, capture::capture};
use crate::support::{TestDb, eventually};

/// As many as block every thread that the handlers have.
const THREADS: usize = 2;

#[derive(Debug, Clone, Default)]
struct Gate {
    blocked: Arc<AtomicUsize>,
    is_open: Arc<AtomicBool>,
}

impl Gate {
    fn block(&self) {
        self.blocked.fetch_add(1, Ordering::SeqCst);
        while !self.is_open.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

struct Blocks;

#[flow(input = (), state = Gate)]
impl Blocks {
    #[step(timeout = "3s")]
    async fn block(state: &Gate) -> StepResult<()> {
        state.block();
        Ok(())
    }
}

/// A worker on a runtime of its own, whose threads are all blocked.
struct Case {
    database: TestDb,
    gate: Gate,
    worker: WorkerHandle,
    run_ids: Vec<Uuid>,
    runtime: Option<Runtime>,
    lines: Capture,
}

impl Case {
    async fn new() -> Self {
        let lines = capture();
        let database = TestDb::new().await;
        let gate = Gate::default();
        let dispatch = dispatcher::get_default(Clone::clone);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .enable_all()
            // What these threads log is captured, too.
            .on_thread_start(move || std::mem::forget(dispatcher::set_default(&dispatch)))
            .build()
            .unwrap();
        let starting = runtime.spawn({
            let (url, gate) = (database.url.clone(), gate.clone());
            async move {
                let options: PgConnectOptions = url.parse().unwrap();
                let pool = PgPoolOptions::new()
                    .max_connections(3)
                    .connect_lazy_with(options.application_name("blocks"));
                FlowWorker::<Blocks>::with_state(gate).start(&pool).await
            }
        });
        let worker = starting.await.unwrap().unwrap();
        let client = Client::new(database.pool.clone());
        let mut run_ids = Vec::new();
        for _ in 0..THREADS {
            run_ids.push(client.start::<Blocks>(&()).await.unwrap().run_id());
        }
        let case = Self {
            database,
            gate,
            worker,
            run_ids,
            runtime: Some(runtime),
            lines,
        };
        eventually(DEADLINE, "every thread is blocked", async || {
            (case.gate.blocked.load(Ordering::SeqCst) == THREADS).then_some(())
        })
        .await;
        case
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        self.gate.is_open.store(true, Ordering::SeqCst);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn heartbeat(pool: &PgPool, worker_id: Uuid) -> (String, String) {
    sqlx::query_as(
        "select s.last_heartbeat_at::text, s.state from pgflow.worker_status s where worker_id = $1",
    )
    .bind(worker_id)
    .fetch_one(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn heartbeats_go_on_and_a_lost_connection_is_replaced() {
    let case = Case::new().await;
    let (pool, worker_id) = (&case.database.pool, case.worker.worker_id());
    for _ in 0..2 {
        let (before, _) = heartbeat(pool, worker_id).await;
        let pid = until_listening(&case.database, "blocks", None).await;
        super::backends::terminate(&case.database, pid).await;
        let state = eventually(DEADLINE, "the next heartbeat", async || {
            let (last, state) = heartbeat(pool, worker_id).await;
            (last != before).then_some(state)
        })
        .await;
        assert_eq!(state, "running");
    }
}

#[tokio::test]
async fn a_warning_names_each_handler_that_holds_its_thread_once() {
    let case = Case::new().await;
    let text = "the handler holds its thread";
    eventually(DEADLINE, "both are named", async || {
        (case.lines.lines(text).len() >= THREADS).then_some(())
    })
    .await;
    // Several looks later.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let lines = case.lines.lines(text);
    assert_eq!(lines.len(), THREADS, "{lines:?}");
    for run_id in &case.run_ids {
        let of_run = format!("run_id={run_id} task_index=0 attempt=1");
        let line = lines.iter().find(|line| line.contains(&of_run));
        let line = line.unwrap_or_else(|| panic!("{run_id} is not in {lines:?}"));
        assert!(line.contains("WARN"), "{line}");
        assert!(line.contains("flow=\"blocks\" step=\"block\""), "{line}");
        assert!(line.contains("spawn_blocking"), "{line}");
    }
}

#[tokio::test]
async fn the_process_is_not_live_until_its_threads_are_free_again() {
    let case = Case::new().await;
    assert!(case.worker.health().is_live, "it has only begun");
    eventually(DEADLINE, "it is not live", async || {
        (!case.worker.health().is_live).then_some(())
    })
    .await;
    case.gate.is_open.store(true, Ordering::SeqCst);
    eventually(DEADLINE, "it is live again", async || {
        case.worker.health().is_live.then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_attempt_that_goes_on_after_its_timeout_is_reported_with_heartbeats() {
    let case = Case::new().await;
    super::run_sql(
        &case.database.pool,
        "create table reported (worker_id uuid, run_ids uuid[], step_slugs text[], attempts int[]); \
         create or replace function pgflow.report_overdue_attempts(worker_id uuid, run_ids uuid[], step_slugs text[], \
             task_indexes int[], attempts int[]) returns void language sql as \
             $$ insert into public.reported select worker_id, run_ids, step_slugs, attempts $$",
    )
    .await;
    let (worker_id, mut run_ids, step_slugs): (Uuid, Vec<Uuid>, Vec<String>) =
        eventually(DEADLINE, "a report", async || {
            sqlx::query_as("select worker_id, run_ids, step_slugs from reported limit 1")
                .fetch_optional(&case.database.pool)
                .await
                .unwrap()
        })
        .await;
    assert_eq!(worker_id, case.worker.worker_id());
    assert_eq!(step_slugs, ["block", "block"]);
    run_ids.sort_unstable();
    let mut expected = case.run_ids.clone();
    expected.sort_unstable();
    assert_eq!(run_ids, expected);
}
