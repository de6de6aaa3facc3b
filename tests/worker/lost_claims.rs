//! Claims whose answers are lost: the worker lives, and does not know what it has.

use pgflow::client::Client;
use pgflow::prelude::*;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::{DEADLINE, task};
use crate::support::{TestDb, eventually, invariants::assert_invariants, proxy::Proxy};

struct Training;

#[flow(input = u32, timeout = "2h")]
impl Training {
    #[step]
    async fn train(input: u32) -> StepResult<u32> {
        Ok(input + 1)
    }
}

#[tokio::test]
async fn what_it_started_does_not_wait_for_its_timeout_and_counts_no_attempt() {
    let database = TestDb::new().await;
    let options: PgConnectOptions = database.url.parse().unwrap();
    let socket = options.get_socket().expect("tests use a socket");
    let proxy = Proxy::start(&socket.join(format!(".s.PGSQL.{}", options.get_port()))).await;
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/{}?sslmode=disable",
        proxy.port(),
        database.name
    );
    let pool = PgPoolOptions::new().connect(&url).await.unwrap();
    let worker = FlowWorker::<Training>::new()
        .poll_interval(std::time::Duration::from_millis(20))
        .start(&pool)
        .await
        .unwrap();

    // Its claims wait here.
    let mut block = database.pool.begin().await.unwrap();
    sqlx::query("lock table pgflow.workers in access exclusive mode")
        .execute(&mut *block)
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    let run = client.start::<Training>(&1).await.unwrap();
    eventually(DEADLINE, "a claim is held up", async || {
        let is_held_up: bool = sqlx::query_scalar(
            "select exists (select from pg_stat_activity where datname = current_database() \
             and wait_event_type = 'Lock' and query like '%claim_tasks%' and pid <> pg_backend_pid())",
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        is_held_up.then_some(())
    })
    .await;
    proxy.withhold_answers();
    block.rollback().await.unwrap();
    eventually(DEADLINE, "the task is started", async || {
        (task(&database.pool, run.run_id(), Step::Train).await.status == "started").then_some(())
    })
    .await;
    proxy.cut();
    proxy.resume();

    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(output.train, 2);
    let task = task(&database.pool, run.run_id(), Step::Train).await;
    assert_eq!(task.attempts, 1, "its handler was started once");
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}
