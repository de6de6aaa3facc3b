//! Waiting for runs, and looking at them.

use std::time::Duration;

use pgflow::client::{Client, ClientError, RunError, RunHandle, RunStatus, SkipReason, StepStatus};
use pgflow::worker::{FlowWorker, WorkerHandle};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::TestDb;

const DEADLINE: Duration = Duration::from_secs(20);

mod order {
    use pgflow::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) struct Input {
        pub(super) amount: i64,
        pub(super) gift: bool,
    }

    pub(super) struct Order;

    #[flow(input = Input, max_attempts = 1, output_derive = [Debug, PartialEq])]
    impl Order {
        #[step]
        async fn pay(input: &Input) -> StepResult<i64> {
            if input.amount < 0 {
                Err("a negative amount")?;
            }
            Ok(input.amount)
        }

        #[step(if = { gift: true })]
        async fn wrap() -> StepResult<String> {
            Ok("wrapped".to_owned())
        }

        #[step(depends_on = [pay])]
        async fn ship(pay: i64) -> StepResult<i64> {
            Ok(pay + 1)
        }
    }
}

mod other {
    use pgflow::prelude::*;

    pub(super) struct Other;

    #[flow(input = ())]
    impl Other {
        #[step]
        async fn nothing() -> StepResult<()> {
            Ok(())
        }
    }
}

use order::{Input, Order, OrderOutput, Step};
use other::Other;

async fn start(pool: &PgPool) -> WorkerHandle {
    FlowWorker::<Order>::new()
        .poll_interval(Duration::from_millis(20))
        .start(pool)
        .await
        .unwrap()
}

async fn ordered(client: &Client, gift: bool) -> RunHandle<Order> {
    let input = Input { amount: 1, gift };
    client.start::<Order>(&input).await.unwrap()
}

#[tokio::test]
async fn a_completed_run_has_a_typed_output_and_typed_states() {
    let database = TestDb::new().await;
    let worker = start(&database.pool).await;
    let client = Client::new(database.pool.clone());
    let run = ordered(&client, false).await;
    let expected = OrderOutput {
        ship: 2,
        wrap: None,
    };
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap(), expected);
    // Again, by id, and without a timeout.
    assert_eq!(
        client.run::<Order>(run.run_id()).wait().await.unwrap(),
        expected
    );

    let snapshot = run.snapshot().await.unwrap();
    assert_eq!(snapshot.run_id(), run.run_id());
    assert_eq!(snapshot.status(), RunStatus::Completed);
    assert_eq!(snapshot.remaining_steps(), 0);
    assert_eq!(snapshot.output().unwrap(), Some(expected));
    assert!(snapshot.ended_at().unwrap() >= snapshot.started_at());
    let slugs: Vec<_> = snapshot
        .steps()
        .iter()
        .map(|step| step.step_slug.as_str())
        .collect();
    assert_eq!(slugs, ["pay", "wrap", "ship"]);
    let wrap = snapshot.step(Step::Wrap).unwrap();
    assert_eq!(
        (wrap.status, wrap.skip_reason),
        (StepStatus::Skipped, Some(SkipReason::ConditionUnmet))
    );
    let ship = snapshot.step(Step::Ship).unwrap();
    assert_eq!(
        (ship.status, ship.initial_tasks, ship.remaining_tasks),
        (StepStatus::Completed, Some(1), Some(0))
    );
    assert_eq!(ship.output.as_ref().unwrap().get(), "2");
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_failed_run_tells_the_step_and_why() {
    let database = TestDb::new().await;
    let worker = start(&database.pool).await;
    let client = Client::new(database.pool.clone());
    let run = client
        .start::<Order>(&Input {
            amount: -1,
            gift: true,
        })
        .await
        .unwrap();
    let error = run.wait().timeout(DEADLINE).await.unwrap_err();
    let RunError::Failed {
        run_id,
        step,
        message,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (*run_id, step.as_deref(), message.as_str()),
        (run.run_id(), Some("pay"), "a negative amount")
    );
    assert_eq!(
        error.to_string(),
        format!("run {run_id} failed at step `pay`: a negative amount")
    );
    let snapshot = run.snapshot().await.unwrap();
    assert_eq!(snapshot.status(), RunStatus::Failed);
    assert_eq!(snapshot.error_message(), Some("a negative amount"));
    assert_eq!(snapshot.output().unwrap(), None);
    assert_eq!(snapshot.step(Step::Pay).unwrap().status, StepStatus::Failed);
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn waiting_ends_at_the_timeout_and_the_run_goes_on() {
    let database = TestDb::new().await;
    start(&database.pool).await.stop().await.unwrap();
    let client = Client::new(database.pool.clone());
    let run = ordered(&client, true).await;
    let timeout = Duration::from_millis(200);
    let error = run.wait().timeout(timeout).await.unwrap_err();
    assert!(
        matches!(error, RunError::Timeout { timeout: waited, .. } if waited == timeout),
        "{error}"
    );

    let worker = start(&database.pool).await;
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(
        output,
        OrderOutput {
            ship: 2,
            wrap: Some("wrapped".to_owned())
        }
    );
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn an_unknown_run_is_not_waited_for() {
    let database = TestDb::new().await;
    let run = Client::new(database.pool.clone()).run::<Order>(Uuid::now_v7());
    let error = run.wait().await.unwrap_err();
    assert!(
        matches!(error, RunError::NotFound { run_id } if run_id == run.run_id()),
        "{error}"
    );
    let error = run.snapshot().await.unwrap_err();
    assert!(matches!(error, ClientError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn a_run_of_another_flow_is_recognised() {
    let database = TestDb::new().await;
    start(&database.pool).await.stop().await.unwrap();
    let client = Client::new(database.pool.clone());
    let run = ordered(&client, true).await;
    let mistaken = client.run::<Other>(run.run_id());
    let error = mistaken.wait().await.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("belongs to flow `order`, not to flow `other`"),
        "{error}"
    );
    let error = mistaken
        .snapshot()
        .await
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("belongs to flow `order`, not to flow `other`"),
        "{error}"
    );
}

#[tokio::test]
async fn an_output_of_another_type_says_where() {
    let database = TestDb::new().await;
    start(&database.pool).await.stop().await.unwrap();
    let client = Client::new(database.pool.clone());
    let run = ordered(&client, false).await;
    // As a worker of another build would.
    sqlx::query("update pgflow.runs set status = 'completed', completed_at = now(), remaining_steps = 0, output = $1")
        .bind(json!({"ship": "hunter2"}))
        .execute(&database.pool)
        .await
        .unwrap();
    let error = run.wait().timeout(DEADLINE).await.unwrap_err();
    let RunError::Output { source, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        source
            .to_string()
            .starts_with("output of step `ship`: invalid type (a string), expected i64"),
        "{source}"
    );
}

#[tokio::test]
async fn a_wait_outlives_its_connections() {
    let database = TestDb::new().await;
    let worker = start(&database.pool).await;
    let options: sqlx::postgres::PgConnectOptions = database.url.parse().unwrap();
    let pool = PgPool::connect_with(options.application_name("caller"))
        .await
        .unwrap();
    worker.shutdown();
    worker.join().await.unwrap();
    let run = ordered(&Client::new(pool.clone()), false).await;
    let waiting = tokio::spawn(run.wait().timeout(DEADLINE).into_future());
    for _ in 0..5 {
        let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'caller' and datname = current_database()";
        crate::support::eventually(DEADLINE, "the caller is connected", async || {
            let cut: i64 = sqlx::query_scalar(cut)
                .fetch_one(&database.pool)
                .await
                .unwrap();
            (cut > 0).then_some(())
        })
        .await;
    }
    let worker = start(&database.pool).await;
    assert_eq!(waiting.await.unwrap().unwrap().ship, 2);
    worker.stop().await.unwrap();
}
