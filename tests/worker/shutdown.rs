//! The shutdown of workers, and the fate of their tasks.

use std::{sync::Arc, time::Duration};

use pgflow::client::{Client, RunHandle};
use pgflow::prelude::*;
use pgflow::worker::WorkerHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    DEADLINE, SIGNALS, is_marked_stopped, lock_table, probe::Probe, start, task, terminate_self,
    until_held_up, until_workers, worker,
};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

/// A step that ends when it is asked to, or at the probe's word.
struct Patient;

#[flow(input = String, state = Probe)]
impl Patient {
    #[step]
    async fn wait(input: &str, state: &Probe, ctx: &StepContext) -> StepResult<String> {
        match input {
            "obedient" => {
                state.note("waits");
                ctx.cancelled().await;
                state.note("told to stop");
            }
            _ => state.pass("waits").await,
        }
        Ok("done".to_owned())
    }
}

struct Case {
    database: TestDb,
    probe: Probe,
    run: RunHandle<Patient>,
    worker: WorkerHandle,
}

impl Case {
    /// A worker with a task that runs.
    async fn new(input: &str) -> Self {
        let database = TestDb::new().await;
        let probe = Probe::closed();
        let worker = worker::<Patient>(probe.clone())
            .shutdown_timeout(Duration::from_millis(if input == "deaf" {
                300
            } else {
                20_000
            }))
            .start(&database.pool)
            .await
            .unwrap();
        let client = Client::new(database.pool.clone());
        let run = client.start::<Patient>(&input.to_owned()).await.unwrap();
        probe.until_seen("waits").await;
        Self {
            database,
            probe,
            run,
            worker,
        }
    }
}

#[tokio::test]
async fn running_handlers_are_told_and_finish() {
    let case = Case::new("obedient").await;
    let worker_id = case.worker.worker_id();
    case.worker.stop().await.unwrap();
    assert_eq!(case.probe.seen(), ["told to stop", "waits"]);
    let output = case.run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(output.wait, "done");
    assert!(is_marked_stopped(&case.database.pool, worker_id).await);
    assert_invariants(&case.database.pool).await;
}

#[tokio::test]
async fn a_stopping_worker_claims_nothing_more() {
    let case = Case::new("slow").await;
    case.worker.shutdown();
    let client = Client::new(case.database.pool.clone());
    let late = client.start::<Patient>(&"late".to_owned()).await.unwrap();
    case.probe.let_all_go();
    case.worker.join().await.unwrap();
    case.run.wait().timeout(DEADLINE).await.unwrap();
    let task = task(&case.database.pool, late.run_id(), Step::Wait).await;
    assert_eq!((task.status.as_str(), task.attempts), ("queued", 0));
}

#[tokio::test]
async fn ten_stops_that_drop_a_handler_give_its_task_back_and_count_nothing() {
    let case = Case::new("deaf").await;
    let (pool, probe) = (&case.database.pool, &case.probe);
    let mut running = case.worker;
    for deployment in 1..=10 {
        let worker_id = running.worker_id();
        running.stop().await.unwrap();
        assert!(is_marked_stopped(pool, worker_id).await);
        let task = task(pool, case.run.run_id(), Step::Wait).await;
        assert_eq!((task.status.as_str(), task.attempts), ("queued", 0));
        running = worker::<Patient>(probe.clone())
            .shutdown_timeout(Duration::from_millis(1))
            .start(pool)
            .await
            .unwrap();
        // No recovery is waited for: the message is visible.
        eventually(DEADLINE, "the next worker runs it", async || {
            (probe.seen().len() > deployment).then_some(())
        })
        .await;
    }
    probe.let_all_go();
    case.run.wait().timeout(DEADLINE).await.unwrap();
    let requeued: i32 = sqlx::query_scalar("select requeued_count from pgflow.step_tasks")
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!(requeued, 0, "no worker died");
    assert_invariants(pool).await;
}

mod blocking {
    use std::sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    };

    use super::*;

    pub(super) const BLOCKS: u8 = 1;
    const LET_GO: u8 = 2;

    /// Ends what blocks when it is dropped. Until then it keeps the runtime's timers going: they
    /// stand still while nothing else wakes a thread, when the one that drives them is the one that
    /// blocks.
    pub(super) struct LetGo(Arc<AtomicU8>);

    impl LetGo {
        pub(super) fn of(state: &Arc<AtomicU8>) -> Self {
            let (runtime, state) = (tokio::runtime::Handle::current(), Arc::clone(state));
            let seen = Arc::clone(&state);
            std::thread::spawn(move || {
                while seen.load(Ordering::SeqCst) != LET_GO {
                    drop(runtime.spawn(async {}));
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            Self(state)
        }
    }

    impl Drop for LetGo {
        fn drop(&mut self) {
            self.0.store(LET_GO, Ordering::SeqCst);
        }
    }

    /// A step that blocks its thread until the test ends that.
    pub(super) struct Blocking;

    #[flow(input = (), state = Arc<AtomicU8>)]
    impl Blocking {
        #[step]
        async fn block(state: &Arc<AtomicU8>) -> StepResult<()> {
            state.store(BLOCKS, Ordering::SeqCst);
            while state.load(Ordering::SeqCst) != LET_GO {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_handler_that_blocks_its_thread_does_not_hold_the_shutdown_up() {
    use std::sync::atomic::{AtomicU8, Ordering};
    let database = TestDb::new().await;
    let state = Arc::new(AtomicU8::new(0));
    // Also when the test fails: its runtime waits for the thread.
    let _let_go = blocking::LetGo::of(&state);
    let worker = worker::<blocking::Blocking>(Arc::clone(&state))
        .shutdown_timeout(Duration::ZERO)
        .start(&database.pool)
        .await
        .unwrap();
    Client::new(database.pool.clone())
        .start::<blocking::Blocking>(&())
        .await
        .unwrap();
    eventually(DEADLINE, "the handler blocks", async || {
        (state.load(Ordering::SeqCst) == blocking::BLOCKS).then_some(())
    })
    .await;
    timeout(DEADLINE, worker.stop()).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_was_claimed_and_not_started_is_given_back() {
    let database = TestDb::new().await;
    let probe = Probe::open();
    let worker = start::<Patient>(&database.pool, probe.clone()).await;

    let block = lock_table(&database.pool, "pgflow.workers").await;
    until_held_up(&database.pool, "claim_tasks").await;
    let run = Client::new(database.pool.clone())
        .start::<Patient>(&"any".to_owned())
        .await
        .unwrap();
    worker.shutdown();
    block.rollback().await.unwrap();
    worker.join().await.unwrap();

    let task = task(&database.pool, run.run_id(), Step::Wait).await;
    assert_eq!((task.status.as_str(), task.attempts), ("queued", 0));
    let read_count: i32 =
        sqlx::query_scalar("select read_ct from pgmq.q_patient where vt <= clock_timestamp()")
            .fetch_one(&database.pool)
            .await
            .unwrap();
    assert_eq!(read_count, 1, "the claim had taken it");
    assert_eq!(probe.seen(), [""; 0]);
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_deprecated_worker_drains() {
    let case = Case::new("obedient").await;
    sqlx::raw_sql("update pgflow.workers set deprecated_at = now()")
        .execute(&case.database.pool)
        .await
        .unwrap();
    case.worker.join().await.unwrap();
    case.run.wait().timeout(DEADLINE).await.unwrap();
}

#[tokio::test]
async fn dropping_the_handle_drains() {
    let Case {
        database,
        run,
        worker,
        ..
    } = Case::new("obedient").await;
    let worker_id = worker.worker_id();
    drop(worker);
    run.wait().timeout(DEADLINE).await.unwrap();
    eventually(DEADLINE, "the worker is marked as stopped", async || {
        is_marked_stopped(&database.pool, worker_id)
            .await
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_worker_stops_at_the_word_of_the_caller() {
    let database = TestDb::new().await;
    let token = CancellationToken::new();
    let build = || worker::<Patient>(Probe::open()).shutdown_on(token.clone().cancelled_owned());
    let handle = build().start(&database.pool).await.unwrap();
    let run = tokio::spawn({
        let (worker, pool) = (build(), database.pool.clone());
        async move { worker.run(&pool).await }
    });
    until_workers(&database.pool, 2).await;
    token.cancel();
    handle.stopped().await;
    handle.join().await.unwrap();
    run.await.unwrap().unwrap();
    until_workers(&database.pool, 0).await;
}

#[tokio::test]
async fn a_signal_drains() {
    let _alone = SIGNALS.lock().await;
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let run = tokio::spawn({
        let (worker, pool) = (worker::<Patient>(probe.clone()), database.pool.clone());
        async move { worker.run(&pool).await }
    });
    until_workers(&database.pool, 1).await;
    let client = Client::new(database.pool.clone());
    client
        .start::<Patient>(&"obedient".to_owned())
        .await
        .unwrap();
    client.start::<Patient>(&"deaf".to_owned()).await.unwrap();
    probe.until_count(2).await;

    terminate_self();
    probe.until_seen("told to stop").await;
    assert!(!run.is_finished(), "the other handler still runs");
    probe.let_all_go();
    run.await.unwrap().unwrap();
}

#[tokio::test]
async fn one_that_finishes_what_it_runs_is_seen_to_drain_and_to_serve_nobody() {
    let case = Case::new("stubborn").await;
    let pool = &case.database.pool;
    case.worker.shutdown();
    let state = "select w.state, c.is_covered from pgflow.worker_status w join pgflow.coverage c on c.queue_name = w.queue_name";
    eventually(DEADLINE, "the worker is seen to drain", async || {
        let (state, is_covered): (String, bool) =
            sqlx::query_as(state).fetch_one(pool).await.unwrap();
        (state == "draining" && !is_covered).then_some(())
    })
    .await;
    case.probe.let_all_go();
    case.worker.stop().await.unwrap();
    case.run.wait().timeout(DEADLINE).await.unwrap();
    let (state, _): (String, bool) = sqlx::query_as(state).fetch_one(pool).await.unwrap();
    assert_eq!(state, "stopped");
    assert_invariants(pool).await;
}
