use std::time::Duration;

use tokio::{task::yield_now, time::sleep};

use super::*;
use crate::worker::testing::{Act, claimed, output, shared};

/// Lasts as many milliseconds as the attempt's number says.
const LAST: Act = |milliseconds| {
    Box::pin(async move {
        sleep(Duration::from_millis(milliseconds.unsigned_abs().into())).await;
        Ok(output())
    })
};

fn executor(concurrency: usize) -> (Executor, Busy, mpsc::Receiver<Finished>) {
    let (sender, receiver) = mpsc::channel(concurrency);
    let busy = Busy::default();
    let executor = Executor::new(shared(Some(LAST), concurrency), busy.clone(), sender);
    (executor, busy, receiver)
}

async fn started(milliseconds: &[i32]) -> (Executor, Busy, mpsc::Receiver<Finished>) {
    let (mut executor, busy, receiver) = executor(4);
    for &milliseconds in milliseconds {
        executor.start(0, claimed(milliseconds));
    }
    yield_now().await;
    (executor, busy, receiver)
}

#[tokio::test(start_paused = true)]
async fn free_slots_are_there_at_once() {
    let (mut executor, busy, _receiver) = started(&[1000, 1000]).await;
    let start = Instant::now();
    assert_eq!(executor.free_slots().await, 2);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(!busy.is_idle());
}

#[tokio::test(start_paused = true)]
async fn without_a_free_slot_the_first_that_ends_is_waited_for_and_those_that_end_with_it() {
    let (mut executor, _busy, _receiver) = started(&[100, 101, 1000, 1000]).await;
    let start = Instant::now();
    assert_eq!(executor.free_slots().await, 2);
    assert_eq!(start.elapsed().as_millis(), 102);
}

#[tokio::test(start_paused = true)]
async fn when_all_have_ended_nobody_is_waited_for() {
    let (mut executor, busy, mut receiver) = started(&[100, 100, 100, 100]).await;
    let start = Instant::now();
    assert_eq!(executor.free_slots().await, 4);
    assert_eq!(start.elapsed().as_millis(), 100);
    assert!(busy.is_idle());
    drop(executor);
    let mut results = 0;
    while receiver.recv().await.is_some() {
        results += 1;
    }
    assert_eq!(results, 4);
}

#[tokio::test(start_paused = true)]
async fn results_that_nobody_takes_keep_their_slots() {
    let (mut executor, _busy, mut receiver) = started(&[1, 1, 1, 1]).await;
    assert_eq!(executor.free_slots().await, 4);
    for _ in 0..4 {
        executor.start(0, claimed(1));
    }
    // The channel is full.
    let slots = timeout(Duration::from_mins(1), executor.free_slots()).await;
    assert!(slots.is_err());
    for _ in 0..8 {
        receiver.recv().await.expect("a result");
    }
    assert_eq!(executor.free_slots().await, 4);
}

#[tokio::test(start_paused = true)]
async fn draining_lets_handlers_end_until_the_deadline() {
    let (executor, busy, mut receiver) = started(&[100, 1000]).await;
    executor
        .drain(Instant::now() + Duration::from_millis(500))
        .await;
    assert!(
        busy.is_idle(),
        "the handler that was dropped does not count"
    );
    assert_eq!(receiver.recv().await.expect("the first").key.attempt, 100);
    assert!(receiver.recv().await.is_none());
}
