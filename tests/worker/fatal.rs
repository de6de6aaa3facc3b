//! Work that the worker can't do.

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::{startup::StartupError, worker::WorkerError};

use super::{DEADLINE, is_marked_stopped, probe::Probe, start, task, until_task_is, worker};
use crate::support::TestDb;

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
    assert_eq!((status.as_str(), attempts), ("queued", 0));
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
