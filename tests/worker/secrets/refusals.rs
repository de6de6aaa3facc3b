//! Work that can't be done, starts that are refused, databases that can't be reached.

use std::time::Duration;

use pgflow::client::{Client, ClientError};
use pgflow::prelude::*;
use pgflow::startup::StartupError;
use pgflow::worker::WorkerError;
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use uuid::Uuid;

use super::super::{define, run_sql, start, worker};
use super::watch::{DATA, SECRET, Watch};
use super::{Account, Vault, account, start_with, tamper};

/// One step with a queue of its own.
mod queued {
    use super::*;

    pub(super) struct Queued;

    #[flow(input = Account, with_step_queues)]
    impl Queued {
        #[step]
        async fn check(input: &Account) -> StepResult<String> {
            Ok(input.token.clone())
        }
    }
}

/// Another shape under the same slug.
mod changed {
    use super::*;

    pub(super) struct Changed;

    #[flow(input = Account, slug = "vault")]
    impl Changed {
        #[step]
        async fn list(input: &Account) -> StepResult<String> {
            Ok(input.token.clone())
        }
    }
}

async fn refused(watch: &mut Watch) -> StartupError {
    let error = worker::<Vault>(()).start(&watch.database.pool).await;
    let error = error.expect_err("the worker must not start");
    watch.saw(&error);
    error
}

#[tokio::test]
async fn work_that_a_worker_can_not_do_and_starts_that_are_refused_tell_nothing() {
    let mut watch = Watch::new().await;
    let pool = watch.database.pool.clone();
    define::<Vault>(&pool, ()).await;
    start_with(&pool, "vault", &account()).await;
    // A body that contradicts its task, and one without a task.
    let contradiction = json!({"step_slug": SECRET, "more": [SECRET]});
    let contradict = "update pgmq.q_vault set message = message || $1";
    tamper(&pool, contradict, contradiction).await;
    let body = json!({"run_id": SECRET});
    tamper(&pool, "select pgmq.send('vault', $1)", body).await;
    let handle = start::<Vault>(&pool, ()).await;
    let error = handle.join().await.unwrap_err();
    assert!(
        matches!(&error, WorkerError::UnsupportedWork { messages } if messages.len() == 2),
        "{error}"
    );
    watch.saw(&error);
    let line = watch
        .lines()
        .line("the queue holds work that this worker can't do");
    for part in ["ERROR", "queue=\"vault\"", "message_ids=[1, 2]"] {
        assert!(line.contains(part), "{part} in {line}");
    }

    let error = refused(&mut watch).await;
    assert!(
        matches!(error, StartupError::FunctionDisabled(_)),
        "{error}"
    );
    let error = worker::<changed::Changed>(())
        .start(&pool)
        .await
        .unwrap_err();
    assert!(matches!(error, StartupError::ShapeMismatch(_)), "{error}");
    watch.saw(&error);
    run_sql(&pool, "update pgflow.steps set queue_name = 'elsewhere'").await;
    let error = refused(&mut watch).await;
    assert!(matches!(error, StartupError::RoutingMismatch(_)), "{error}");
    run_sql(&pool, "update pgflow.installation set protocol_version = 1").await;
    let error = refused(&mut watch).await;
    assert!(matches!(error, StartupError::NotReady(_)), "{error}");

    let found = watch.assert_kept().await;
    assert_eq!((found.data, found.messages), (vec![DATA[0].to_owned()], 2));
}

#[tokio::test]
async fn work_that_a_step_s_worker_can_not_do_tells_nothing() {
    use queued::{Queued, Step};
    let mut watch = Watch::new().await;
    let pool = watch.database.pool.clone();
    run_sql(&pool, "select pgmq.create('queued__check')").await;
    let start = || StepWorker::<Queued>::new(Step::Check).start(&pool);
    let error = start().await.unwrap_err();
    assert!(matches!(error, StartupError::QueueCollision(_)), "{error}");
    watch.saw(&error);
    run_sql(&pool, "select pgmq.drop_queue('queued__check')").await;

    let handle = start().await.unwrap();
    let send = "select pgmq.send('queued__check', $1)";
    tamper(&pool, send, json!(SECRET)).await;
    start_with(&pool, "queued", &account()).await;
    let error = handle.join().await.unwrap_err();
    assert!(
        matches!(error, WorkerError::UnsupportedWork { .. }),
        "{error}"
    );
    watch.saw(&error);
    let error = start().await.unwrap_err();
    assert!(
        matches!(error, StartupError::FunctionDisabled(_)),
        "{error}"
    );
    watch.saw(&error);
    assert_eq!(watch.assert_kept().await.messages, 1);
}

#[tokio::test]
async fn the_password_of_a_database_that_can_not_be_reached_is_not_told() {
    let mut watch = Watch::new().await;
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(200))
        .connect_lazy("postgres://pgflow:hunter2@127.0.0.1:1/pgflow")
        .unwrap();
    let error = worker::<Vault>(()).start(&pool).await.unwrap_err();
    assert!(matches!(error, StartupError::Connect(_)), "{error}");
    watch.saw(&error);
    let client = Client::new(pool.clone());
    let input: Account = serde_json::from_value(account()).unwrap();
    let error = client.start::<Vault>(&input).await.unwrap_err();
    assert!(matches!(error, ClientError::Database(_)), "{error}");
    watch.saw(&error);
    let run = client.run::<Vault>(Uuid::now_v7());
    let texts = format!("{client:?} {run:?}");
    assert!(!texts.contains(SECRET), "{texts}");
    watch.assert_kept().await;
}
