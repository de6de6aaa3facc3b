//! Starting runs.

use pgflow::RefusalCode;
use pgflow::client::{Client, ClientError, RunStatus, StartFlow};
use pgflow::prelude::*;
use pgflow::worker::FlowWorker;
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::TestDb;

pub(super) struct Hello;

#[flow(input = String)]
impl Hello {
    #[step]
    async fn greet(input: &str) -> StepResult<String> {
        Ok(format!("hello {input}"))
    }
}

/// A database that knows the flow; nobody works on it.
pub(super) async fn defined() -> TestDb {
    let database = TestDb::new().await;
    let worker = FlowWorker::<Hello>::new()
        .start(&database.pool)
        .await
        .unwrap();
    worker.stop().await.unwrap();
    database
}

pub(super) async fn runs(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from pgflow.runs")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_flow_that_no_worker_has_defined_is_unknown() {
    let database = TestDb::new().await;
    let client = Client::new(database.pool.clone());
    let error = client.start::<Hello>(&"you".to_owned()).await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownFlow(_)), "{error}");
    assert!(error.to_string().contains("hello"), "{error}");
}

#[tokio::test]
async fn the_same_run_id_again_is_the_same_run() {
    let database = defined().await;
    let client = Client::new(database.pool.clone());
    let run_id = Uuid::now_v7();
    for name in ["you", "you"] {
        let run = client
            .start_with_id::<Hello>(run_id, &name.to_owned())
            .await
            .unwrap();
        assert_eq!(run.run_id(), run_id);
    }
    let other = "somebody else".to_owned();
    match client.start_with_id::<Hello>(run_id, &other).await {
        Err(ClientError::Refused(refusal)) => {
            assert_eq!(refusal.code(), RefusalCode::InvalidArgument);
            assert!(refusal.to_string().contains("another input"), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(runs(&database.pool).await, 1);
    let input: String = sqlx::query_scalar("select input #>> '{}' from pgflow.runs")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(input, "you");
}

#[tokio::test]
async fn a_run_exists_exactly_when_its_transaction_commits() {
    let database = defined().await;
    let client = Client::new(database.pool.clone());
    let mut transaction = database.pool.begin().await.unwrap();
    let undone = Hello::start(&mut *transaction, &"nobody".to_owned())
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    let error = client.run::<Hello>(undone).snapshot().await.unwrap_err();
    assert!(matches!(error, ClientError::NotFound { .. }), "{error}");

    let mut transaction = database.pool.begin().await.unwrap();
    let chosen = Uuid::now_v7();
    Hello::start_with_id(&mut *transaction, chosen, &"you".to_owned())
        .await
        .unwrap();
    assert_eq!(runs(&database.pool).await, 0);
    transaction.commit().await.unwrap();
    let snapshot = client.run::<Hello>(chosen).snapshot().await.unwrap();
    assert_eq!(snapshot.status(), RunStatus::Started);
}

#[tokio::test]
async fn an_input_with_nul_is_refused_before_the_database_is_asked() {
    let database = defined().await;
    let client = Client::new(database.pool.clone());
    let error = client.start::<Hello>(&"a\0b".to_owned()).await.unwrap_err();
    assert!(
        matches!(error, ClientError::UnstorableInput { index: None, .. }),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "the input of flow `hello` can't be stored"
    );
    assert_eq!(runs(&database.pool).await, 0);
}
