//! Workers of one process of which some are out of service: the others continue, and those come
//! back.

use std::time::Duration;

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::{
    startup::StartupError,
    worker::{WorkerError, WorkerState, WorkersHandle},
};

use super::{DEADLINE, define, in_time, probe::Probe, run_sql, until_workers, worker};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

const POLL: Duration = Duration::from_millis(20);

mod plain {
    use super::*;

    pub(super) struct Lone;

    #[flow(input = u32, state = Probe)]
    impl Lone {
        #[step]
        async fn only(input: u32, state: &Probe) -> StepResult<u32> {
            state.pass("lone").await;
            Ok(input + 1)
        }
    }
}

mod queued {
    use super::*;

    pub(super) struct Duo;

    #[flow(input = u32, with_step_queues)]
    impl Duo {
        #[step]
        async fn first(input: u32) -> StepResult<u32> {
            Ok(input + 1)
        }

        #[step(depends_on = [first])]
        async fn second(first: u32) -> StepResult<u32> {
            Ok(first + 1)
        }
    }
}

use plain::Lone;
use queued::Duo;

async fn both(database: &TestDb) -> Result<WorkersHandle, StartupError> {
    Workers::new(&database.pool)
        .add(worker::<Lone>(Probe::open()))
        .add(StepWorker::<Duo>::all().poll_interval(POLL))
        .start()
        .await
}

async fn until_state(workers: &WorkersHandle, place: usize, state: WorkerState) {
    let what = format!("worker {place} is {state:?}");
    eventually(DEADLINE, what, async || {
        (workers.health().workers[place].state == state).then_some(())
    })
    .await;
}

async fn serves_lone(database: &TestDb) {
    let client = Client::new(database.pool.clone());
    let run = client.start::<Lone>(&1).await.unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().only, 2);
}

async fn serves_duo(database: &TestDb) {
    let client = Client::new(database.pool.clone());
    let run = client.start::<Duo>(&1).await.unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().second, 3);
}

async fn fence(database: &TestDb, functions: &str) {
    let sql = format!("select pgflow.fence_worker_functions('{{{functions}}}', 'release 42')");
    run_sql(&database.pool, &sql).await;
}

async fn unfence(database: &TestDb, functions: &str) {
    let sql = format!("select pgflow.unfence_worker_functions('{{{functions}}}')");
    run_sql(&database.pool, &sql).await;
}

#[tokio::test]
async fn a_fenced_flow_comes_back_after_the_fence_and_the_other_goes_on_meanwhile() {
    let database = TestDb::new().await;
    let workers = both(&database).await.unwrap();
    fence(&database, "lone").await;
    until_state(&workers, 0, WorkerState::Fenced).await;
    assert!(workers.health().is_ready, "a fence is meant");
    serves_duo(&database).await;
    unfence(&database, "lone").await;
    serves_lone(&database).await;
    assert_eq!(workers.health().workers[0].state, WorkerState::Serving);
    workers.stop().await.unwrap();
    until_workers(&database.pool, 0).await;
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_fenced_step_comes_back_after_the_fence() {
    let database = TestDb::new().await;
    let all = StepWorker::<Duo>::all().poll_interval(POLL);
    let workers = all.start(&database.pool).await.unwrap();
    fence(&database, "duo__second").await;
    until_state(&workers, 1, WorkerState::Fenced).await;
    unfence(&database, "duo__second").await;
    serves_duo(&database).await;
    workers.stop().await.unwrap();
}

/// The worker still drains when the fence ends.
#[tokio::test]
async fn a_fence_that_is_short_is_no_reason_to_stay_away() {
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let workers = Workers::new(&database.pool)
        .add(worker::<Lone>(probe.clone()))
        .add(StepWorker::<Duo>::all().poll_interval(POLL))
        .start()
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    client.start::<Lone>(&1).await.unwrap();
    probe.until_seen("lone").await;
    fence(&database, "lone").await;
    until_state(&workers, 0, WorkerState::Draining).await;
    unfence(&database, "lone").await;
    probe.let_all_go();
    serves_lone(&database).await;
    workers.stop().await.unwrap();
}

#[tokio::test]
async fn a_process_whose_workers_are_all_fenced_ends() {
    let database = TestDb::new().await;
    let workers = both(&database).await.unwrap();
    fence(&database, "lone,duo__first,duo__second").await;
    in_time(workers.join()).await.unwrap();
    until_workers(&database.pool, 0).await;
}

#[tokio::test]
async fn a_stray_message_stops_only_its_own_worker_which_comes_back_when_enabled() {
    let database = TestDb::new().await;
    let workers = both(&database).await.unwrap();
    run_sql(&database.pool, "select pgmq.send('lone', '{}')").await;
    until_state(&workers, 0, WorkerState::Disabled).await;
    let health = workers.health();
    assert!(health.is_live && !health.is_ready);
    let reason = health.workers[0].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("queue"), "{reason}");
    serves_duo(&database).await;
    run_sql(
        &database.pool,
        "select pgmq.archive('lone', msg_id) from pgmq.q_lone; \
         select pgflow.enable_worker_function('lone')",
    )
    .await;
    serves_lone(&database).await;
    workers.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn one_that_did_not_come_back_is_the_error_at_the_end() {
    let database = TestDb::new().await;
    let workers = both(&database).await.unwrap();
    run_sql(&database.pool, "select pgmq.send('duo__first', '{}')").await;
    until_state(&workers, 1, WorkerState::Disabled).await;
    let error = in_time(workers.stop()).await.unwrap_err();
    assert!(
        matches!(&error, WorkerError::UnsupportedWork { messages } if messages[0].queue_name == "duo__first"),
        "{error}"
    );
}

#[tokio::test]
async fn a_process_starts_without_a_worker_that_is_disabled_and_serves_it_once_it_is_enabled() {
    let database = TestDb::new().await;
    define::<Lone>(&database.pool, Probe::open()).await;
    run_sql(
        &database.pool,
        "select pgflow.disable_worker_function('lone', 'we look into it')",
    )
    .await;
    let workers = both(&database).await.unwrap();
    assert_eq!(workers.worker_ids().len(), 2);
    let health = workers.health();
    assert_eq!(health.workers[0].state, WorkerState::Disabled);
    let reason = health.workers[0].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("we look into it"), "{reason}");
    serves_duo(&database).await;
    run_sql(
        &database.pool,
        "select pgflow.enable_worker_function('lone')",
    )
    .await;
    serves_lone(&database).await;
    workers.stop().await.unwrap();
}

#[tokio::test]
async fn a_process_whose_workers_are_all_disabled_does_not_start() {
    let database = TestDb::new().await;
    both(&database).await.unwrap().stop().await.unwrap();
    run_sql(
        &database.pool,
        "select pgflow.disable_worker_function(function_name, 'for ' || function_name) from pgflow.worker_functions",
    )
    .await;
    let error = in_time(both(&database)).await.unwrap_err();
    let StartupError::FunctionDisabled(disabled) = &error else {
        panic!("{error}");
    };
    assert_eq!(disabled.reason.as_deref(), Some("for lone"));
    until_workers(&database.pool, 0).await;
}

/// The worker's own mistake does not become a wait.
#[tokio::test]
async fn a_definition_that_differs_still_keeps_the_whole_process_from_starting() {
    let database = TestDb::new().await;
    both(&database).await.unwrap().stop().await.unwrap();
    run_sql(&database.pool, "select pgflow.add_step('lone', 'ghost')").await;
    let error = in_time(both(&database)).await.unwrap_err();
    assert!(matches!(error, StartupError::ShapeMismatch(_)), "{error}");
    until_workers(&database.pool, 0).await;
}
