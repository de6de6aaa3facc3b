//! Hundreds of waits and streams in one process.

use std::{sync::mpsc, thread, time::Duration};

use pgflow::{
    client::{Client, RunHandle},
    sqlx::postgres::PgPoolOptions,
    worker::FlowWorker,
};
use tokio::task::JoinSet;

use crate::support::{TestDb, eventually};

const DEADLINE: Duration = Duration::from_mins(1);
/// None is woken by a look of its own in a test.
const HOUR: Duration = Duration::from_hours(1);

mod chain {
    use pgflow::prelude::*;

    pub(super) struct Chain;

    #[flow(input = i64)]
    impl Chain {
        #[step]
        async fn first(input: i64) -> StepResult<i64> {
            Ok(input)
        }

        #[step(depends_on = [first])]
        async fn last(first: i64) -> StepResult<i64> {
            Ok(first)
        }
    }
}

use chain::Chain;

async fn worker(database: &TestDb) -> pgflow::WorkerHandle {
    FlowWorker::<Chain>::new()
        .start(&database.pool)
        .await
        .unwrap()
}

async fn started(database: &TestDb, count: i64) -> (Client, Vec<RunHandle<Chain>>) {
    worker(database).await.stop().await.unwrap();
    let client = Client::new(database.pool.clone());
    let inputs: Vec<i64> = (0..count).collect();
    let runs = client.start_many::<Chain>(&inputs).await.unwrap();
    (client, runs)
}

/// Transactions of the database so far.
async fn transactions(database: &TestDb) -> i64 {
    sqlx::query_scalar(
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

/// Returns once there are few transactions per second: each waiter first looks once by itself.
async fn until_few_transactions(database: &TestDb) {
    eventually(DEADLINE, "there are few transactions", async || {
        let before = transactions(database).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let per_second = (transactions(database).await - before) / 2;
        (per_second < 30).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waits_and_streams_are_looked_at_together() {
    let database = TestDb::new().await;
    let (client, runs) = started(&database, 1000).await;
    let client = client.listen(false);
    let mut waits = JoinSet::new();
    for (number, run) in runs.iter().enumerate() {
        let run = client.run::<Chain>(run.run_id());
        if number % 4 == 0 {
            waits.spawn(async move {
                let mut events = run.events().await.unwrap();
                while events.next().await.is_some() {}
            });
        } else {
            waits.spawn(async move {
                run.wait().await.unwrap();
            });
        }
    }
    until_few_transactions(&database).await;
    let worker = worker(&database).await;
    while let Some(ended) = waits.join_next().await {
        ended.unwrap();
    }
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn waits_of_any_interval_end_with_the_notification() {
    let database = TestDb::new().await;
    let (_, runs) = started(&database, 3).await;
    let mut waits = JoinSet::new();
    for (run, interval) in
        runs.into_iter()
            .zip([Duration::MAX, Duration::from_secs(u64::MAX), HOUR])
    {
        waits.spawn(async move { run.wait().poll_interval(interval).timeout(DEADLINE).await });
    }
    let worker = worker(&database).await;
    while let Some(ended) = waits.join_next().await {
        ended.unwrap().unwrap();
    }
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn an_interval_of_zero_does_not_spin() {
    let database = TestDb::new().await;
    let (client, runs) = started(&database, 1).await;
    let run = client.listen(false).run::<Chain>(runs[0].run_id());
    let waiting = tokio::spawn(async move {
        let wait = run.wait().poll_interval(Duration::ZERO);
        wait.await.unwrap();
    });
    let before = transactions(&database).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let rate = (transactions(&database).await - before) / 3;
    assert!(rate < 150, "{rate} transactions a second");
    waiting.abort();
}

#[tokio::test]
async fn a_process_ends_under_hundreds_of_waits_and_streams() {
    let database = TestDb::new().await;
    let (_, runs) = started(&database, 300).await;
    let run_ids: Vec<_> = runs.iter().map(RunHandle::run_id).collect();
    let url = database.url.clone();
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        for round in 0..8 {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let pool = PgPoolOptions::new().max_connections(5).connect(&url).await;
                let client = Client::new(pool.unwrap());
                for (number, &run_id) in run_ids.iter().enumerate() {
                    let run = client.run::<Chain>(run_id);
                    if number % 2 == 0 {
                        tokio::spawn(async move { run.wait().await.map(drop) });
                    } else {
                        tokio::spawn(async move {
                            let mut events = run.events().await.unwrap();
                            while events.next().await.is_some() {}
                            Ok::<(), pgflow::RunError>(())
                        });
                    }
                }
                tokio::time::sleep(Duration::from_millis(100 * round)).await;
            });
            drop(runtime);
        }
        let _ = done.send(());
    });
    tokio::task::spawn_blocking(move || is_done.recv_timeout(DEADLINE))
        .await
        .unwrap()
        .expect("a runtime did not shut down");
}

#[tokio::test]
async fn a_pool_of_two_runtimes_serves_the_second_after_the_first_has_ended() {
    let database = TestDb::new().await;
    let (_, runs) = started(&database, 2).await;
    let [first, second] = [runs[0].clone(), runs[1].clone()];
    tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.spawn(async move { first.wait().await.map(drop) });
        runtime.block_on(tokio::time::sleep(Duration::from_millis(300)));
        // With it ends the task that looks and listens for both.
    })
    .await
    .unwrap();
    let waiting = tokio::spawn(async move { second.wait().timeout(DEADLINE).await });
    let worker = worker(&database).await;
    waiting.await.unwrap().unwrap();
    worker.stop().await.unwrap();
}
