//! Starting many runs in one call.

use std::time::Duration;

use pgflow::RefusalCode;
use pgflow::client::{Client, ClientError, RunStatus, StartFlow};
use pgflow::prelude::*;
use pgflow::worker::FlowWorker;
use uuid::Uuid;

use super::start::{Hello, defined, runs};
use crate::support::TestDb;
use crate::support::invariants::assert_invariants;

const DEADLINE: Duration = Duration::from_secs(20);

struct Other;

#[flow(input = String)]
impl Other {
    #[step]
    async fn greet(input: &str) -> StepResult<String> {
        Ok(input.to_owned())
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn handles_return_in_the_order_of_the_inputs_and_a_worker_of_this_process_is_woken() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    // It hears of the runs from the client, or not at all.
    let workers = Workers::new(pool)
        .add(FlowWorker::<Hello>::new().poll_interval(Duration::from_hours(1)))
        .listen(false)
        .start()
        .await
        .unwrap();
    let client = Client::new(pool.clone());
    // The first ones could be found because the worker looks when it starts.
    for time in 0..3 {
        let inputs: Vec<String> = (0..50).map(|n| format!("{time}, {n}")).collect();
        let handles = client.start_many::<Hello>(&inputs).await.unwrap();
        assert_eq!(handles.len(), 50);
        for (handle, input) in handles.iter().zip(&inputs) {
            let output = handle.wait().timeout(DEADLINE).await.unwrap();
            assert_eq!(output.greet, format!("hello {input}"));
        }
    }
    workers.stop().await.unwrap();
    assert_invariants(pool).await;
}

#[tokio::test]
async fn without_inputs_the_database_is_not_asked() {
    let database = TestDb::new().await;
    let client = Client::new(database.pool.clone());
    database.pool.close().await;
    assert!(client.start_many::<Hello>(&[]).await.unwrap().is_empty());
    let with_ids = client.start_many_with_ids::<Hello>(&[]).await;
    assert!(with_ids.unwrap().is_empty());
    let error = client.start_many::<Hello>(&names(&["you"])).await;
    assert!(matches!(error, Err(ClientError::Database(_))), "{error:?}");
}

#[tokio::test]
async fn runs_that_exist_are_found_and_the_others_are_started() {
    let database = defined().await;
    let client = Client::new(database.pool.clone());
    let ids = [Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7()];
    let first = [(ids[2], "c".to_owned()), (ids[0], "a".to_owned())];
    let all = [
        (ids[0], "a".to_owned()),
        (ids[1], "b".to_owned()),
        (ids[2], "c".to_owned()),
    ];
    for (call, number) in [(first.as_slice(), 2), (&all, 3), (&all, 3)] {
        let handles = client.start_many_with_ids::<Hello>(call).await.unwrap();
        let found: Vec<Uuid> = handles.iter().map(RunHandle::run_id).collect();
        let expected: Vec<Uuid> = call.iter().map(|(id, _)| *id).collect();
        assert_eq!(found, expected);
        assert_eq!(runs(&database.pool).await, number);
    }
    let inputs: Vec<String> =
        sqlx::query_scalar("select input #>> '{}' from pgflow.runs order by run_id")
            .fetch_all(&database.pool)
            .await
            .unwrap();
    assert_eq!(inputs, ["a", "b", "c"]);
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn what_is_refused_starts_none() {
    let database = defined().await;
    let client = Client::new(database.pool.clone());
    let error = client.start_many::<Other>(&names(&["you", "me"])).await;
    assert!(
        matches!(error, Err(ClientError::UnknownFlow(_))),
        "{error:?}"
    );

    // Before the database is asked.
    let inputs = names(&["you", "me", "a\0b", "\0"]);
    let error = client.start_many::<Hello>(&inputs).await.unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::UnstorableInput {
                flow: "hello",
                index: Some(2),
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "the input at index 2 of flow `hello` can't be stored"
    );
    assert_eq!(runs(&database.pool).await, 0);

    let worker = FlowWorker::<Other>::new().start(&database.pool).await;
    worker.unwrap().stop().await.unwrap();
    let id = Uuid::now_v7();
    client
        .start_with_id::<Other>(id, &"you".to_owned())
        .await
        .unwrap();
    let calls = [(Uuid::now_v7(), "new".to_owned()), (id, "you".to_owned())];
    match client.start_many_with_ids::<Hello>(&calls).await {
        Err(ClientError::Refused(refusal)) => {
            assert_eq!(refusal.code(), RefusalCode::InvalidArgument);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(runs(&database.pool).await, 1);
}

#[tokio::test]
async fn several_calls_in_a_transaction_are_all_or_none() {
    let database = defined().await;
    let client = Client::new(database.pool.clone());
    for commits in [false, true] {
        let mut transaction = database.pool.begin().await.unwrap();
        let mut ids = Hello::start_many(&mut *transaction, &names(&["a", "b"]))
            .await
            .unwrap();
        let chosen = Uuid::now_v7();
        let more = [(chosen, "c".to_owned())];
        let more = Hello::start_many_with_ids(&mut *transaction, &more).await;
        assert_eq!(more.unwrap(), [chosen]);
        ids.push(chosen);
        assert_eq!(runs(&database.pool).await, 0);
        if commits {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
        for id in ids {
            let snapshot = client.run::<Hello>(id).snapshot().await;
            match snapshot {
                Ok(snapshot) if commits => assert_eq!(snapshot.status(), RunStatus::Started),
                Err(ClientError::NotFound { run_id }) if !commits => assert_eq!(run_id, id),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_invariants(&database.pool).await;
}
