use tokio::{task::yield_now, time::Instant};

use super::*;

/// Shows life once per interval, in a task of its own.
fn keep_alive(lead: Lead<'static>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { lead.until_lost().await })
}

fn leadership() -> &'static Leadership {
    Box::leak(Box::default())
}

#[tokio::test(start_paused = true)]
async fn while_the_leader_shows_life_nobody_else_leads() {
    let leadership = leadership();
    let leader = leadership.take().await;
    assert!(leader.is_first());
    let _leader = keep_alive(leader);
    assert!(timeout(PATIENCE * 100, leadership.take()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn when_the_leader_ends_another_leads_at_once() {
    let leadership = leadership();
    let leader = keep_alive(leadership.take().await);
    let follower = tokio::spawn(leadership.take());
    sleep(PATIENCE / 2).await;
    assert!(!follower.is_finished());
    let ended = Instant::now();
    leader.abort();
    let lead = follower.await.unwrap();
    assert!(!lead.is_first());
    assert_eq!(ended.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_while_it_is_told_passes_that_on() {
    let leadership = leadership();
    let leader = leadership.take().await;
    let first = tokio::spawn(leadership.take());
    let second = tokio::spawn(leadership.take());
    yield_now().await;
    let ended = Instant::now();
    drop(leader);
    first.abort();
    second.await.unwrap();
    assert_eq!(ended.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_sign_of_life_loses_the_lead_and_sees_it() {
    let leadership = leadership();
    let stuck = leadership.take().await;
    let taken = timeout(PATIENCE * 2, leadership.take()).await;
    let taken = taken.expect("the lead is taken");
    assert!(!stuck.show_life(), "it is no longer its own");
    drop(stuck);
    let _taken = keep_alive(taken);
    assert!(
        timeout(PATIENCE * 100, leadership.take()).await.is_err(),
        "what was lost can't be given up"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_late_as_everything_was_keeps_the_lead() {
    let leadership = leadership();
    let leader = leadership.take().await;
    let follower = tokio::spawn(leadership.take());
    // The runtime stands still for longer than anybody is patient, and runs the follower first.
    yield_now().await;
    tokio::time::advance(PATIENCE * 5).await;
    yield_now().await;
    let _leader = keep_alive(leader);
    assert!(timeout(PATIENCE * 100, follower).await.is_err());
}
