//! Two workers on one queue.

use pgflow::client::Client;
use pgflow::prelude::*;
use sqlx::PgPool;

use super::{DEADLINE, probe::Probe, worker};
use crate::support::{TestDb, invariants::assert_invariants};

/// A map over numbers; each task reports its number and waits.
struct Numbers;

#[flow(input = Vec<u32>, state = Probe)]
impl Numbers {
    #[step(map = input)]
    async fn visit(item: u32, state: &Probe) -> StepResult<u32> {
        state.pass(format!("{item:03}")).await;
        Ok(item)
    }
}

#[tokio::test]
async fn each_task_is_done_once_and_both_take_part() {
    let database = TestDb::new().await;
    let (first, second) = (Probe::closed(), Probe::closed());
    let mut workers = Vec::new();
    for probe in [&first, &second] {
        let pool = PgPool::connect(&database.url).await.unwrap();
        let worker = worker::<Numbers>(probe.clone()).concurrency(5);
        workers.push(worker.start(&pool).await.unwrap());
    }
    let input: Vec<u32> = (0..200).collect();
    let run = Client::new(database.pool.clone())
        .start::<Numbers>(&input)
        .await
        .unwrap();

    // No more than there are slots, in each.
    first.until_count(5).await;
    second.until_count(5).await;
    assert_eq!((first.seen().len(), second.seen().len()), (5, 5));

    first.let_all_go();
    second.let_all_go();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().visit, input);
    let mut seen = [first.seen(), second.seen()].concat();
    seen.sort();
    let expected: Vec<String> = input.iter().map(|item| format!("{item:03}")).collect();
    assert_eq!(seen, expected);
    for worker in workers {
        worker.stop().await.unwrap();
    }
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn many_runs_on_four_workers_do_each_task_once() {
    const RUNS: usize = 10;
    let database = TestDb::new().await;
    let probe = Probe::open();
    let mut workers = Vec::new();
    for _ in 0..4 {
        let pool = PgPool::connect(&database.url).await.unwrap();
        let worker = worker::<Numbers>(probe.clone());
        workers.push(worker.start(&pool).await.unwrap());
    }
    let client = Client::new(database.pool.clone());
    let input: Vec<u32> = (0..100).collect();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(client.start::<Numbers>(&input).await.unwrap());
    }
    for run in runs {
        assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().visit, input);
    }
    let expected = input
        .iter()
        .flat_map(|item| vec![format!("{item:03}"); RUNS]);
    assert_eq!(probe.seen(), expected.collect::<Vec<_>>());
    for worker in workers {
        worker.stop().await.unwrap();
    }
    assert_invariants(&database.pool).await;
}
