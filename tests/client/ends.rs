//! Ends that callers hear of. Where a wait looks by itself only after an hour, nothing but a
//! notification ends it in time.

use pgflow::client::{Client, RunError, RunHandle};
use pgflow::prelude::*;
use tokio::task::JoinHandle;

use super::callers::{Callers, DEADLINE, HOUR};
use crate::support::events::set_event_level;

struct Halve;

#[flow(input = i64, max_attempts = 1)]
impl Halve {
    #[step]
    async fn halve(input: &i64) -> StepResult<i64> {
        if input % 2 == 1 {
            Err("an odd number")?;
        }
        Ok(input / 2)
    }
}

type Waiting = JoinHandle<Result<i64, RunError>>;

/// Callers, a run of which nothing was done yet, and somebody who waits for it and listens.
async fn waiting(connections: u32) -> (Callers, RunHandle<Halve>, Waiting) {
    let callers = Callers::of::<Halve>(connections).await;
    let run = callers.client.start::<Halve>(&2).await.unwrap();
    let waiting = wait(&run);
    callers.until_listening(None).await;
    (callers, run, waiting)
}

/// Waits with looks that are an hour apart, besides the first one.
fn wait(run: &RunHandle<Halve>) -> Waiting {
    let wait = run.wait().poll_interval(HOUR);
    tokio::spawn(async move { wait.await.map(|output| output.halve) })
}

async fn result(waiting: Waiting) -> Result<i64, RunError> {
    let ended = tokio::time::timeout(DEADLINE, waiting).await;
    ended.expect("the end is heard of").unwrap()
}

/// The run is done, and the end of it is heard of.
async fn hears_the_end(callers: &Callers, waiting: Waiting) {
    let worker = callers.work::<Halve>().await;
    assert_eq!(result(waiting).await.unwrap(), 1);
    callers.stop(worker).await;
}

#[tokio::test]
async fn many_waits_hear_of_their_ends_over_one_connection() {
    let callers = Callers::of::<Halve>(4).await;
    let inputs: Vec<i64> = (0..200).collect();
    let runs = callers.client.start_many::<Halve>(&inputs).await.unwrap();
    let waiting: Vec<_> = runs.iter().map(wait).collect();
    let line = callers.until_listening(None).await;
    let worker = callers.work::<Halve>().await;
    for (input, waiting) in inputs.into_iter().zip(waiting) {
        match result(waiting).await {
            Ok(half) => assert_eq!(half * 2, input),
            Err(RunError::Failed { message, .. }) => {
                assert!(
                    input % 2 == 1 && message.contains("an odd number"),
                    "{message}"
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(callers.lines().await, [line]);
    callers.stop(worker).await;
}

#[tokio::test]
async fn the_connection_ends_when_nothing_waits_any_more() {
    let (callers, run, waiting) = waiting(2).await;
    waiting.abort();
    callers.until_none_listens().await;
    // And comes again.
    let waiting = wait(&run);
    callers.until_listening(None).await;
    hears_the_end(&callers, waiting).await;
}

#[tokio::test]
async fn an_end_is_seen_though_the_connection_was_lost() {
    let (callers, _run, waiting) = waiting(2).await;
    // What ends while there is no connection is found by the look that follows the next LISTEN.
    callers.lose_line().await;
    hears_the_end(&callers, waiting).await;
}

#[tokio::test]
async fn without_events_waiting_looks_by_itself() {
    let callers = Callers::of::<Halve>(2).await;
    set_event_level(&callers.database.pool, "off").await;
    let run = callers.client.start::<Halve>(&2).await.unwrap();
    let wait = run.wait().timeout(DEADLINE).into_future();
    let waiting = tokio::spawn(async move { wait.await.map(|output| output.halve) });
    callers.until_listening(None).await;
    hears_the_end(&callers, waiting).await;
}

#[tokio::test]
async fn who_does_not_listen_needs_no_connection() {
    // Only one that listens, too, would make a second one necessary.
    let callers = Callers::of::<Halve>(1).await;
    let worker = callers.work::<Halve>().await;
    let client = callers.client.clone().listen(false);
    for input in 0..5 {
        let run = client.start::<Halve>(&(input * 2)).await.unwrap();
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.halve, input);
        assert!(callers.lines().await.is_empty());
    }
    callers.stop(worker).await;
}

#[tokio::test]
async fn a_run_that_ended_before_is_told_at_once_and_without_a_connection() {
    let callers = Callers::of::<Halve>(2).await;
    let worker = callers.work::<Halve>().await;
    let quiet = Client::new(callers.database.pool.clone()).listen(false);
    let run = quiet.start::<Halve>(&2).await.unwrap();
    run.wait().timeout(DEADLINE).await.unwrap();
    let run = callers.client.run::<Halve>(run.run_id());
    assert_eq!(result(wait(&run)).await.unwrap(), 1);
    assert!(callers.lines().await.is_empty());
    callers.stop(worker).await;
}

#[tokio::test]
async fn a_pool_of_one_connection_is_enough_also_while_that_is_taken() {
    let (callers, _run, waiting) = waiting(1).await;
    let line = callers.until_listening(None).await;
    let taken = callers.pool.acquire().await.unwrap();
    callers.terminate(line).await;
    callers.until_listening(Some(line)).await;
    drop(taken);
    hears_the_end(&callers, waiting).await;
}

#[tokio::test]
async fn a_closed_pool_leaves_no_connection_behind() {
    let (callers, _run, waiting) = waiting(2).await;
    callers.pool.close().await;
    let error = result(waiting).await.unwrap_err();
    assert!(matches!(error, RunError::Database { .. }), "{error}");
    callers.until_none_listens().await;
}
