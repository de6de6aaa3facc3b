//! Another definition in a local database: the workers that run the stored one stop first.

use std::time::Duration;

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::{startup::StartupError, worker::WorkerHandle};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{
    DEADLINE, all_rows, capture::capture, in_time, is_marked_stopped, make_local, probe::Probe,
    run_sql, running_workers, until_held_up,
};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

mod old {
    use super::*;

    pub(super) struct Old;

    #[flow(input = u32, slug = "orders", state = Probe, with_step_queues)]
    impl Old {
        #[step]
        async fn fetch(input: u32, state: &Probe, ctx: &StepContext) -> StepResult<u32> {
            state.note("fetches");
            ctx.cancelled().await;
            state.note("told to stop");
            state.pass("ends").await;
            Ok(input)
        }

        #[step(depends_on = [fetch])]
        async fn store(fetch: u32) -> StepResult<u32> {
            Ok(fetch)
        }
    }
}

mod new {
    use super::*;

    pub(super) struct New;

    #[flow(input = u32, slug = "orders", with_step_queues)]
    impl New {
        #[step]
        async fn fetch(input: u32) -> StepResult<u32> {
            Ok(input)
        }

        #[step(depends_on = [fetch])]
        async fn check(fetch: u32) -> StepResult<u32> {
            Ok(fetch + 1)
        }

        #[step(depends_on = [check])]
        async fn store(check: u32) -> StepResult<u32> {
            Ok(check)
        }
    }
}

/// The shape of the old one in one queue.
mod plain {
    use super::*;

    pub(super) struct Plain;

    #[flow(input = u32, slug = "orders")]
    impl Plain {
        #[step]
        async fn fetch(input: u32) -> StepResult<u32> {
            Ok(input)
        }

        #[step(depends_on = [fetch])]
        async fn store(fetch: u32) -> StepResult<u32> {
            Ok(fetch)
        }
    }
}

use new::New;
use old::{Old, Step as OldStep};
use plain::Plain;

/// A local database with a worker of the old flow that runs a task.
struct Case {
    database: TestDb,
    probe: Probe,
    old: WorkerHandle,
}

impl Case {
    async fn new() -> Self {
        let database = TestDb::new().await;
        make_local(&database.pool).await;
        let probe = Probe::closed();
        let old = old_worker(&probe).start(&database.pool).await.unwrap();
        let client = Client::new(database.pool.clone());
        client.start::<Old>(&1).await.unwrap();
        probe.until_seen("fetches").await;
        Self {
            database,
            probe,
            old,
        }
    }

    async fn until_old_worker_is_told(&self) {
        let worker_id = self.old.worker_id();
        eventually(DEADLINE, "the old worker is deprecated", async || {
            let is_deprecated = "select true from pgflow.workers where worker_id = $1 and deprecated_at is not null";
            sqlx::query_scalar::<_, bool>(is_deprecated)
                .bind(worker_id)
                .fetch_optional(&self.database.pool)
                .await
                .unwrap()
        })
        .await;
    }
}

fn old_worker(probe: &Probe) -> StepWorker<Old> {
    StepWorker::<Old>::with_state(OldStep::Fetch, probe.clone())
        .poll_interval(Duration::from_millis(20))
}

fn new_workers() -> pgflow::StepWorkers<New> {
    StepWorker::<New>::all().poll_interval(Duration::from_millis(20))
}

async fn steps(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select step_slug from pgflow.steps order by step_index")
        .fetch_all(pool)
        .await
        .unwrap()
}

async fn expect_a_new_flow(database: &TestDb) {
    assert_eq!(steps(&database.pool).await, ["fetch", "check", "store"]);
    let runs: i64 = sqlx::query_scalar("select count(*) from pgflow.runs")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(runs, 0, "the old runs are gone");
    let run = Client::new(database.pool.clone())
        .start::<New>(&1)
        .await
        .unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().store, 2);
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_live_worker_drains_first() {
    let logged = capture();
    let case = Case::new().await;
    let pool = case.database.pool.clone();
    let starting = tokio::spawn(async move { new_workers().start(&pool).await });
    case.until_old_worker_is_told().await;
    // With its next heartbeat.
    case.probe.until_seen("told to stop").await;
    assert!(!starting.is_finished(), "the old worker still runs a task");
    assert_eq!(steps(&case.database.pool).await, ["fetch", "store"]);
    let waits = logged.lines("waiting for the workers that run it to stop");
    assert!(!waits.is_empty(), "{}", logged.all());
    let who = format!(
        "worker {} of function `orders__fetch`, step `fetch`: 1 task started",
        case.old.worker_id()
    );
    assert!(waits[0].contains(&who), "{}", waits[0]);

    case.probe.let_all_go();
    in_time(case.old.join()).await.unwrap();
    let workers = in_time(starting).await.unwrap().unwrap();
    let replaced = logged.line("the local database had another definition of the flow");
    assert!(replaced.contains("WARN"), "{replaced}");
    assert!(replaced.contains("its runs are gone"), "{replaced}");
    assert_eq!(logged.lines("definition=\"recompiled\"").len(), 1);
    expect_a_new_flow(&case.database).await;
    workers.stop().await.unwrap();
}

#[tokio::test]
async fn a_dead_worker_is_not_waited_for() {
    let database = TestDb::new().await;
    make_local(&database.pool).await;
    let probe = Probe::closed();
    let (worker, pool) = (old_worker(&probe), database.pool.clone());
    let running = tokio::spawn(async move { worker.run(&pool).await });
    let client = Client::new(database.pool.clone());
    eventually(DEADLINE, "the flow is defined", async || {
        client.start::<Old>(&1).await.ok()
    })
    .await;
    probe.until_seen("fetches").await;
    running.abort();
    assert!(in_time(running).await.unwrap_err().is_cancelled());
    assert_eq!(running_workers(&database.pool).await, 1);
    run_sql(
        &database.pool,
        "update pgflow.workers set last_heartbeat_at = now() - interval '7 seconds'",
    )
    .await;
    let workers = new_workers()
        .drain_timeout(Duration::ZERO)
        .start(&database.pool)
        .await
        .unwrap();
    expect_a_new_flow(&database).await;
    workers.stop().await.unwrap();
}

#[tokio::test]
async fn when_the_time_is_over_the_live_workers_are_named_and_nothing_was_deleted() {
    let case = Case::new().await;
    let before = all_rows(&case.database.pool, &["workers"]).await;
    let error = new_workers()
        .drain_timeout(Duration::from_millis(700))
        .start(&case.database.pool)
        .await
        .unwrap_err();
    let text = error.to_string();
    let StartupError::DrainTimeout {
        flow,
        differences,
        waited,
        workers,
    } = error
    else {
        panic!("{text}");
    };
    assert_eq!(flow, "orders");
    assert!(
        differences.iter().any(|line| line.contains("check")),
        "{text}"
    );
    assert!(waited >= Duration::from_millis(700));
    assert_eq!(workers.len(), 1, "{text}");
    assert_eq!(
        (workers[0].worker_id, workers[0].function_name.as_str()),
        (case.old.worker_id(), "orders__fetch")
    );
    assert_eq!(workers[0].step_slug.as_deref(), Some("fetch"));
    assert_eq!(workers[0].started_tasks, 1);
    assert!(text.contains(&case.old.worker_id().to_string()), "{text}");
    assert_eq!(all_rows(&case.database.pool, &["workers"]).await, before);
    // What it was told is kept.
    case.until_old_worker_is_told().await;
    case.probe.let_all_go();
    in_time(case.old.join()).await.unwrap();
}

#[tokio::test]
async fn a_request_to_stop_ends_the_wait_and_is_no_error() {
    let case = Case::new().await;
    let token = CancellationToken::new();
    let run = tokio::spawn({
        let workers = new_workers().shutdown_on(token.clone().cancelled_owned());
        let pool = case.database.pool.clone();
        async move { workers.run(&pool).await }
    });
    let start = tokio::spawn({
        let worker = StepWorker::<New>::new(new::Step::Check);
        let worker = worker.shutdown_on(token.clone().cancelled_owned());
        let pool = case.database.pool.clone();
        async move { worker.start(&pool).await }
    });
    case.until_old_worker_is_told().await;
    token.cancel();
    in_time(run).await.unwrap().unwrap();
    let error = in_time(start).await.unwrap().unwrap_err();
    assert!(matches!(error, StartupError::ShutDown), "{error}");
    assert_eq!(steps(&case.database.pool).await, ["fetch", "store"]);
    case.probe.let_all_go();
    in_time(case.old.join()).await.unwrap();
}

#[tokio::test]
async fn a_disabled_function_does_not_even_tell_the_old_workers() {
    let case = Case::new().await;
    run_sql(
        &case.database.pool,
        "insert into pgflow.worker_functions (function_name, enabled, disabled_at) values ('off', false, now())",
    )
    .await;
    let error = StepWorker::<New>::new(new::Step::Check)
        .function_name("off")
        .start(&case.database.pool)
        .await
        .unwrap_err();
    assert!(
        matches!(error, StartupError::FunctionDisabled(_)),
        "{error}"
    );
    let told: i64 =
        sqlx::query_scalar("select count(*) from pgflow.workers where deprecated_at is not null")
            .fetch_one(&case.database.pool)
            .await
            .unwrap();
    assert_eq!(told, 0);
    case.probe.let_all_go();
    case.old.stop().await.unwrap();
}

#[tokio::test]
async fn a_queue_mode_is_changed_in_the_same_way() {
    let database = TestDb::new().await;
    make_local(&database.pool).await;
    let workers = StepWorker::<Old>::all_with_state(Probe::open());
    workers
        .start(&database.pool)
        .await
        .unwrap()
        .stop()
        .await
        .unwrap();
    let worker = FlowWorker::<Plain>::new()
        .start(&database.pool)
        .await
        .unwrap();
    let queues: Vec<String> = sqlx::query_scalar("select queue_name::text from pgmq.meta")
        .fetch_all(&database.pool)
        .await
        .unwrap();
    assert_eq!(queues, ["orders"]);
    let client = Client::new(database.pool.clone());
    let run = client.start::<Plain>(&1).await.unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().store, 1);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_worker_whose_claim_runs_into_a_dropped_queue_drains() {
    let logged = capture();
    let case = Case::new().await;
    let worker_id = case.old.worker_id();
    let mut deletion = case.database.pool.begin().await.unwrap();
    sqlx::raw_sql("select pgflow.delete_flow_and_data('orders')")
        .execute(&mut *deletion)
        .await
        .unwrap();
    until_held_up(&case.database.pool, "claim_tasks").await;
    deletion.commit().await.unwrap();
    // Its handler, too, comes back to a task that is gone.
    case.probe.until_seen("told to stop").await;
    case.probe.let_all_go();
    in_time(case.old.join()).await.unwrap();
    assert!(is_marked_stopped(&case.database.pool, worker_id).await);
    let failed = logged.line("a claim failed, it is made again with more care");
    assert!(failed.contains("pgmq.q_orders__fetch"), "{failed}");
    assert_eq!(
        logged.lines("the task is gone").len(),
        1,
        "{}",
        logged.all()
    );
}
