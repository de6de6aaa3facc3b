//! Workers killed, the server crashed, connections cut, at random and under load: nothing is lost,
//! and nothing happens that must not.
//!
//! Four worker processes serve one flow through a proxy, while a producer starts runs of it. Things
//! go wrong by a schedule that a seed decides. When they have gone wrong for long enough,
//! everything is given time to settle; then what the flow's handlers did, seen from outside, what
//! the tables and queues hold, and how the rows came to be so, must be as the inputs of the runs
//! say.
//!
//! `PGFLOW_CHAOS_SECONDS=600` for a long run, which waits for the product's own recovery;
//! `PGFLOW_CHAOS_SEED` for the schedule of another run.

mod effects;
mod expected;
mod fleet;
mod flows;
mod judge;
mod producer;
mod schedule;
mod server;
mod silence;
mod story;
mod worker;
mod world;

use std::time::Duration;

use producer::Producer;
use story::{Plan, Story};
use world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// All steps in one queue.
    Flow,
    /// A queue for each step.
    Steps,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_in_one_queue_survives_chaos() {
    survives_chaos(Mode::Flow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_with_a_queue_for_each_step_survives_chaos() {
    survives_chaos(Mode::Steps).await;
}

async fn survives_chaos(mode: Mode) {
    let plan = Plan::from_environment();
    let mut world = World::begin(mode, plan, Story::begin(mode, plan)).await;
    world.until_all_serve().await;
    // Enough to keep all workers busy. In a long run many of them wait for recovery.
    let most_runs = if plan.hurries { 40 } else { 150 };
    let producer = Producer::start(mode, &world.url(), plan.seed, most_runs);
    world.go_wrong(plan.duration).await;
    world.calm_down();
    let (orders, repeated_starts) = producer.stop().await;
    // What is lost comes back after 33 s and up to 18 s more, three times at most.
    world.until_settled(Duration::from_mins(5)).await;
    world.wind_up().await;

    judge::assert_all_is_well(&world.server.pool, &orders).await;
    let figures = judge::Figures::of(&world.server.pool).await;
    let tally = world.tally();
    println!("chaos, {mode:?} mode: {figures}; {repeated_starts} starts repeated; {tally}");
    tally.assert_everything_happened();
    assert_eq!(usize::try_from(figures.runs), Ok(orders.len()));
    assert!(figures.failed_runs > 0, "some runs were to fail");
    assert!(
        figures.lost_attempts > 0,
        "no worker was hit while it had work to do"
    );
    assert!(
        plan.hurries || figures.duplicates > 0,
        "nothing was ever done twice, so nobody was hit between a deed and its record"
    );
    assert!(
        figures.given_up * 20 <= figures.runs,
        "too many runs ended because their workers died again and again, the others prove little: {figures}"
    );
}
