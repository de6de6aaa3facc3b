//! Ends that callers hear of. Where a wait looks by itself only after an hour, nothing but a notification ends it in time.

use std::time::Duration;

use pgflow::client::{Client, RunError, RunHandle};
use pgflow::prelude::*;
use pgflow::worker::{FlowWorker, WorkerHandle};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::task::JoinHandle;

use crate::support::invariants::assert_invariants;
use crate::support::{TestDb, eventually};

const DEADLINE: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_hours(1);
/// The name of the callers' connections.
const CALLER: &str = "caller";

struct Halve;

#[flow(input = i64, max_attempts = 1)]
impl Halve {
    #[step]
    async fn halve(input: &i64) -> StepResult<i64> {
        if input % 2 == 1 {
            Err("an odd number")?;
        }
        Ok(input / 2)
    }
}

type Waiting = JoinHandle<Result<i64, RunError>>;

async fn compile(database: &TestDb) {
    start(database).await.stop().await.unwrap();
}

async fn start(database: &TestDb) -> WorkerHandle {
    FlowWorker::<Halve>::new()
        .poll_interval(Duration::from_millis(20))
        .start(&database.pool)
        .await
        .unwrap()
}

fn callers(database: &TestDb, connections: u32) -> PgPool {
    let options: PgConnectOptions = database.url.parse().unwrap();
    PgPoolOptions::new()
        .max_connections(connections)
        .connect_lazy_with(options.application_name(CALLER))
}

/// Waits with looks that are an hour apart, besides the first one.
fn wait(run: &RunHandle<Halve>) -> Waiting {
    let wait = run.wait().poll_interval(HOUR);
    tokio::spawn(async move { wait.await.map(|output| output.halve) })
}

async fn result(waiting: Waiting) -> Result<i64, RunError> {
    let ended = tokio::time::timeout(DEADLINE, waiting).await;
    ended.expect("the end is heard of").unwrap()
}

/// The callers' connections that listen.
async fn lines(database: &TestDb) -> Vec<i32> {
    sqlx::query_scalar(
        "select pid from pg_stat_activity where application_name = $1 and datname = current_database() and query like 'LISTEN %'",
    )
    .bind(CALLER)
    .fetch_all(&database.pool)
    .await
    .unwrap()
}

/// Waits until callers listen on one connection, another than `than`.
async fn until_listening(database: &TestDb, than: Option<i32>) -> i32 {
    let look = async || match lines(database).await[..] {
        [pid] if Some(pid) != than => Some(pid),
        _ => None,
    };
    eventually(DEADLINE, "callers listen", look).await
}

async fn terminate(database: &TestDb, pid: i32) {
    let is_done: bool = sqlx::query_scalar("select pg_terminate_backend($1)")
        .bind(pid)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert!(is_done);
}

#[tokio::test]
async fn many_waits_hear_of_their_ends_over_one_connection() {
    let database = TestDb::new().await;
    compile(&database).await;
    let client = Client::new(callers(&database, 4));
    let inputs: Vec<i64> = (0..200).collect();
    let runs = client.start_many::<Halve>(&inputs).await.unwrap();
    let waiting: Vec<_> = runs.iter().map(wait).collect();
    let line = until_listening(&database, None).await;
    let worker = start(&database).await;
    for (input, waiting) in inputs.into_iter().zip(waiting) {
        match result(waiting).await {
            Ok(half) => assert_eq!(half * 2, input),
            Err(RunError::Failed { message, .. }) => {
                assert!(
                    input % 2 == 1 && message.contains("an odd number"),
                    "{message}"
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(lines(&database).await, [line]);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn the_connection_ends_when_nothing_waits_any_more() {
    let database = TestDb::new().await;
    compile(&database).await;
    let client = Client::new(callers(&database, 2));
    let run = client.start::<Halve>(&2).await.unwrap();
    let waiting = wait(&run);
    until_listening(&database, None).await;
    waiting.abort();
    let look = async || lines(&database).await.is_empty().then_some(());
    eventually(DEADLINE, "the connection is closed", look).await;
    // And comes again.
    let waiting = wait(&run);
    until_listening(&database, None).await;
    let worker = start(&database).await;
    assert_eq!(result(waiting).await.unwrap(), 1);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn an_end_is_seen_though_the_connection_was_lost() {
    let database = TestDb::new().await;
    compile(&database).await;
    let client = Client::new(callers(&database, 2));
    let run = client.start::<Halve>(&2).await.unwrap();
    let waiting = wait(&run);
    let mut line = until_listening(&database, None).await;
    for _ in 0..2 {
        terminate(&database, line).await;
        line = until_listening(&database, Some(line)).await;
    }
    // What ends while there is no connection is found by the look that follows the next LISTEN.
    terminate(&database, line).await;
    let worker = start(&database).await;
    assert_eq!(result(waiting).await.unwrap(), 1);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn without_events_waiting_looks_by_itself() {
    let database = TestDb::new().await;
    compile(&database).await;
    sqlx::query("update pgflow.installation set event_level = 'off'")
        .execute(&database.pool)
        .await
        .unwrap();
    let client = Client::new(callers(&database, 2));
    let run = client.start::<Halve>(&2).await.unwrap();
    let waiting = tokio::spawn(run.wait().timeout(DEADLINE).into_future());
    until_listening(&database, None).await;
    let worker = start(&database).await;
    assert_eq!(waiting.await.unwrap().unwrap().halve, 1);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn who_does_not_listen_needs_no_connection() {
    let database = TestDb::new().await;
    let worker = start(&database).await;
    // Only one that listens, too, would make a second one necessary.
    let client = Client::new(callers(&database, 1)).listen(false);
    for input in 0..5 {
        let run = client.start::<Halve>(&(input * 2)).await.unwrap();
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.halve, input);
        assert!(lines(&database).await.is_empty());
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_run_that_ended_before_is_told_at_once_and_without_a_connection() {
    let database = TestDb::new().await;
    let worker = start(&database).await;
    let quiet = Client::new(database.pool.clone()).listen(false);
    let run_id = quiet.start::<Halve>(&2).await.unwrap().run_id();
    quiet
        .run::<Halve>(run_id)
        .wait()
        .timeout(DEADLINE)
        .await
        .unwrap();
    let run = Client::new(callers(&database, 2)).run::<Halve>(run_id);
    assert_eq!(result(wait(&run)).await.unwrap(), 1);
    assert!(lines(&database).await.is_empty());
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_pool_of_one_connection_is_enough_also_while_that_is_taken() {
    let database = TestDb::new().await;
    compile(&database).await;
    let pool = callers(&database, 1);
    let client = Client::new(pool.clone());
    let run = client.start::<Halve>(&2).await.unwrap();
    let waiting = wait(&run);
    let line = until_listening(&database, None).await;
    let taken = pool.acquire().await.unwrap();
    terminate(&database, line).await;
    until_listening(&database, Some(line)).await;
    drop(taken);
    let worker = start(&database).await;
    assert_eq!(result(waiting).await.unwrap(), 1);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_closed_pool_leaves_no_connection_behind() {
    let database = TestDb::new().await;
    compile(&database).await;
    let pool = callers(&database, 2);
    let run = Client::new(pool.clone()).start::<Halve>(&2).await.unwrap();
    let waiting = wait(&run);
    until_listening(&database, None).await;
    pool.close().await;
    let error = result(waiting).await.unwrap_err();
    assert!(matches!(error, RunError::Database { .. }), "{error}");
    let look = async || lines(&database).await.is_empty().then_some(());
    eventually(DEADLINE, "the connection is closed", look).await;
}
