//! Work that the worker can't do.

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::{startup::StartupError, worker::WorkerError};

use sqlx::PgPool;
use sqlx::types::chrono::{DateTime, Utc};
use std::time::Duration;

use super::{
    DEADLINE, all_rows, define, is_marked_stopped, probe::Probe, run_sql, start, task,
    until_task_is, worker,
};
use crate::support::{TestDb, invariants::assert_invariants};

/// One step that waits at the probe.
struct Gated;

#[flow(input = (), state = Probe)]
impl Gated {
    #[step]
    async fn wait(state: &Probe) -> StepResult<()> {
        state.pass("waits").await;
        Ok(())
    }
}

#[tokio::test]
async fn a_foreign_message_stops_the_worker_after_it_finished_what_runs() {
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let handle = start::<Gated>(&database.pool, probe.clone()).await;
    let worker_id = handle.worker_id();
    let run = Client::new(database.pool.clone())
        .start::<Gated>(&())
        .await
        .unwrap();
    probe.until_seen("waits").await;

    let message_id: i64 = sqlx::query_scalar("select pgmq.send('gated', '{\"secret\": 1}')")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    crate::support::eventually(DEADLINE, "the function is disabled", async || {
        let disabled = "select true from pgflow.worker_functions where function_name = 'gated' and not enabled";
        sqlx::query_scalar::<_, bool>(disabled)
            .fetch_optional(&database.pool)
            .await
            .unwrap()
    })
    .await;
    probe.let_all_go();

    let error = handle.join().await.unwrap_err();
    let text = error.to_string();
    let WorkerError::UnsupportedWork { messages } = error else {
        panic!("{text}");
    };
    assert_eq!(messages.len(), 1);
    assert_eq!(
        (messages[0].queue_name.as_str(), messages[0].message_id),
        ("gated", message_id)
    );
    assert!(!text.contains("secret"), "{text}");
    run.wait().timeout(DEADLINE).await.unwrap();
    assert!(is_marked_stopped(&database.pool, worker_id).await);

    // A supervisor can't loop over it.
    let error = worker::<Gated>(probe)
        .start(&database.pool)
        .await
        .unwrap_err();
    let StartupError::FunctionDisabled(disabled) = &error else {
        panic!("{error}");
    };
    assert!(
        disabled
            .reason
            .as_ref()
            .unwrap()
            .contains(&format!("message {message_id}")),
        "{error}"
    );
}

#[tokio::test]
async fn a_step_that_this_build_does_not_know_is_given_back() {
    let database = TestDb::new().await;
    let probe = Probe::open();
    let handle = start::<Gated>(&database.pool, probe.clone()).await;
    sqlx::raw_sql("select pgflow.add_step('gated', 'ghost')")
        .execute(&database.pool)
        .await
        .unwrap();
    let run = Client::new(database.pool.clone())
        .start::<Gated>(&())
        .await
        .unwrap();

    let error = handle.join().await.unwrap_err().to_string();
    assert!(
        error.contains("flow `gated` has no step `ghost` in this build"),
        "{error}"
    );
    until_task_is(&database.pool, run.run_id(), Step::Wait, "queued").await;
    let (status, attempts): (String, i32) = sqlx::query_as(
        "select status, attempts_count from pgflow.step_tasks where run_id = $1 and step_slug = 'ghost'",
    )
    .bind(run.run_id())
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!((status.as_str(), attempts), ("queued", 1));
    assert_eq!(
        task(&database.pool, run.run_id(), Step::Wait)
            .await
            .attempts,
        0
    );
    assert_eq!(probe.seen(), [""; 0]);
}

#[tokio::test]
async fn a_worker_whose_row_is_gone_stops() {
    let database = TestDb::new().await;
    let handle = start::<Gated>(&database.pool, Probe::open()).await;
    sqlx::raw_sql("delete from pgflow.workers")
        .execute(&database.pool)
        .await
        .unwrap();
    let error = handle.join().await.unwrap_err();
    assert!(matches!(error, WorkerError::NotRegistered(_)), "{error}");
}

#[tokio::test]
async fn a_closed_pool_stops_the_worker() {
    let database = TestDb::new().await;
    let pool = sqlx::PgPool::connect(&database.url).await.unwrap();
    let handle = start::<Gated>(&pool, Probe::open()).await;
    pool.close().await;
    let error = handle.join().await.unwrap_err();
    assert!(matches!(error, WorkerError::PoolClosed(_)), "{error}");
}

mod paired {
    use super::*;

    /// Two steps, each with a queue and a worker function.
    pub(super) struct Paired;

    #[flow(input = u32, state = Probe, with_step_queues)]
    impl Paired {
        #[step]
        async fn first(input: u32, state: &Probe) -> StepResult<u32> {
            state.note("first");
            Ok(input + 1)
        }

        #[step(depends_on = [first])]
        async fn second(first: u32, state: &Probe) -> StepResult<u32> {
            state.note("second");
            Ok(first * 2)
        }
    }
}

/// The throttle of notifications is not about work.
const UNRELATED: &[&str] = &["wakeups"];

/// Every row but those of workers and their functions.
async fn work(pool: &PgPool) -> String {
    all_rows(pool, &["worker", "wakeups"]).await
}

/// Returns the database's record of a function that it has disabled.
async fn disabled(pool: &PgPool) -> Vec<(String, DateTime<Utc>, String)> {
    sqlx::query_as(
        "select function_name, disabled_at, disabled_reason from pgflow.worker_functions where not enabled",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// Starts again and again, as a supervisor does: each time the start is refused with the stored
/// reason, and no row changes.
async fn assert_never_starts<T: std::fmt::Debug>(
    pool: &PgPool,
    name: &str,
    mut start: impl AsyncFnMut() -> Result<T, StartupError>,
) {
    let stored = disabled(pool).await;
    let [(function_name, since, reason)] = &stored[..] else {
        panic!("{stored:?}");
    };
    assert_eq!(function_name, name);
    let before = all_rows(pool, UNRELATED).await;
    for _ in 0..5 {
        let error = start().await.unwrap_err();
        let StartupError::FunctionDisabled(error) = &error else {
            panic!("{error}");
        };
        assert_eq!(error.function_name, name);
        assert_eq!(error.since, Some(*since));
        assert_eq!(error.reason.as_ref(), Some(reason));
        let text = error.to_string();
        let way_out = format!("select pgflow.enable_worker_function('{name}')");
        assert!(text.contains(reason) && text.contains(&way_out), "{text}");
        assert_eq!(all_rows(pool, UNRELATED).await, before);
    }
}

/// Checks that a worker was stopped by this one message.
#[track_caller]
fn assert_stopped_by(error: &WorkerError, queue: &str, message_id: i64) {
    let WorkerError::UnsupportedWork { messages } = error else {
        panic!("{error}");
    };
    let messages: Vec<(&str, i64)> = messages
        .iter()
        .map(|message| (message.queue_name.as_str(), message.message_id))
        .collect();
    assert_eq!(messages, [(queue, message_id)]);
}

async fn send(pool: &PgPool, queue: &str) -> i64 {
    sqlx::query_scalar("select pgmq.send($1, '{}')")
        .bind(queue)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn archive(pool: &PgPool, queue: &str, message_id: i64) {
    let archived: bool = sqlx::query_scalar("select pgmq.archive($1, $2)")
        .bind(queue)
        .bind(message_id)
        .fetch_one(pool)
        .await
        .unwrap();
    assert!(archived);
}

#[tokio::test]
async fn a_supervisor_that_restarts_a_worker_over_poisoned_work_changes_nothing() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    let probe = Probe::open();
    define::<Gated>(pool, probe.clone()).await;
    let client = Client::new(pool.clone());
    let mut runs = vec![client.start::<Gated>(&()).await.unwrap()];
    let message_id = send(pool, "gated").await;
    runs.push(client.start::<Gated>(&()).await.unwrap());

    let before = work(pool).await;
    let handle = start::<Gated>(pool, probe.clone()).await;
    assert_stopped_by(&handle.join().await.unwrap_err(), "gated", message_id);
    assert_eq!(work(pool).await, before);
    assert_never_starts(pool, "gated", async || {
        worker::<Gated>(probe.clone()).start(pool).await
    })
    .await;

    // Enabling alone helps nobody: the same message stops the next worker.
    run_sql(pool, "select pgflow.enable_worker_function('gated')").await;
    let handle = start::<Gated>(pool, probe.clone()).await;
    assert_stopped_by(&handle.join().await.unwrap_err(), "gated", message_id);
    assert_eq!(work(pool).await, before);
    assert_eq!(probe.seen(), [""; 0]);

    archive(pool, "gated", message_id).await;
    assert_never_starts(pool, "gated", async || {
        worker::<Gated>(probe.clone()).start(pool).await
    })
    .await;
    run_sql(pool, "select pgflow.enable_worker_function('gated')").await;
    let handle = start::<Gated>(pool, probe.clone()).await;
    for run in &runs {
        run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(task(pool, run.run_id(), Step::Wait).await.attempts, 1);
    }
    handle.stop().await.unwrap();
    assert_invariants(pool).await;
}

#[tokio::test]
async fn a_poisoned_step_leaves_the_functions_of_the_other_steps_alone() {
    use paired::{Paired, Step};
    let database = TestDb::new().await;
    let pool = &database.pool;
    let probe = Probe::open();
    let build = |step| {
        StepWorker::<Paired>::with_state(step, probe.clone())
            .poll_interval(Duration::from_millis(20))
    };
    let second = build(Step::Second).start(pool).await.unwrap();
    let client = Client::new(pool.clone());
    let mut runs = vec![client.start::<Paired>(&1).await.unwrap()];
    let message_id = send(pool, "paired__first").await;
    runs.push(client.start::<Paired>(&1).await.unwrap());

    let first = build(Step::First).start(pool).await.unwrap();
    let error = first.join().await.unwrap_err();
    assert_stopped_by(&error, "paired__first", message_id);
    // Its heartbeats would be changes.
    second.stop().await.unwrap();
    assert_never_starts(pool, "paired__first", async || {
        build(Step::First).start(pool).await
    })
    .await;
    let second = build(Step::Second).start(pool).await.unwrap();
    assert_eq!(probe.seen(), [""; 0]);

    archive(pool, "paired__first", message_id).await;
    let enable = "select pgflow.enable_worker_function('paired__first')";
    run_sql(pool, enable).await;
    let first = build(Step::First).start(pool).await.unwrap();
    for run in &runs {
        assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().second, 4);
    }
    assert_eq!(probe.seen(), ["first", "first", "second", "second"]);
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    assert_invariants(pool).await;
}

#[tokio::test]
async fn two_poisoned_steps_are_refused_each_for_its_own_message() {
    use paired::{Paired, Step};
    let database = TestDb::new().await;
    let pool = &database.pool;
    let build = |step| {
        StepWorker::<Paired>::with_state(step, Probe::open())
            .poll_interval(Duration::from_millis(20))
    };
    let mut poisoned = Vec::new();
    for (step, queue) in [
        (Step::First, "paired__first"),
        (Step::Second, "paired__second"),
    ] {
        let handle = build(step).start(pool).await.unwrap();
        let message_id = send(pool, queue).await;
        assert_stopped_by(&handle.join().await.unwrap_err(), queue, message_id);
        poisoned.push((step, queue, message_id));
    }
    for (step, queue, message_id) in poisoned {
        let error = build(step).start(pool).await.unwrap_err();
        let StartupError::FunctionDisabled(error) = &error else {
            panic!("{error}");
        };
        let reason = format!(
            "unsupported work in queue \"{queue}\": message {message_id}: no task has this message"
        );
        assert_eq!(error.reason.as_ref(), Some(&reason));
    }
}
