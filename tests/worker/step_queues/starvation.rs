//! The check whether slow tasks of one step keep those of another waiting.

use pgflow::client::Client;
use pgflow::prelude::*;

use super::step_worker;
use crate::support::{TestDb, eventually, invariants::assert_invariants};
use crate::worker::{DEADLINE, probe::Probe, task, until_task_is, worker};

/// Two slots, and as many slow tasks.
const SLOTS: usize = 2;

mod one_queue {
    use super::*;

    pub(super) struct OneQueue;

    #[flow(input = Vec<u32>, state = Probe, slug = "mixed")]
    impl OneQueue {
        #[step(map = input)]
        async fn slow(item: u32, state: &Probe) -> StepResult<u32> {
            state.pass("slow").await;
            Ok(item)
        }

        #[step]
        async fn fast(input: &[u32], state: &Probe) -> StepResult<usize> {
            state.note(format!("fast {}", input.len()));
            Ok(input.len())
        }
    }
}

/// The same with a queue for each step.
mod queue_per_step {
    use super::*;

    pub(super) struct QueuePerStep;

    #[flow(input = Vec<u32>, state = Probe, slug = "mixed", with_step_queues)]
    impl QueuePerStep {
        #[step(map = input)]
        async fn slow(item: u32, state: &Probe) -> StepResult<u32> {
            state.pass("slow").await;
            Ok(item)
        }

        #[step]
        async fn fast(input: &[u32], state: &Probe) -> StepResult<usize> {
            state.note(format!("fast {}", input.len()));
            Ok(input.len())
        }
    }
}

async fn until_slow_tasks_hold_their_slots(probe: &Probe) {
    let is_slow = |seen: &&String| *seen == "slow";
    eventually(DEADLINE, "slow tasks hold all their slots", async || {
        (probe.seen().iter().filter(is_slow).count() == SLOTS).then_some(())
    })
    .await;
}

#[tokio::test]
async fn in_one_queue_slow_tasks_that_hold_all_slots_keep_a_fast_one_waiting() {
    use one_queue::{OneQueue, Step};
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let worker = worker::<OneQueue>(probe.clone()).concurrency(SLOTS);
    let worker = worker.start(&database.pool).await.unwrap();
    let client = Client::new(database.pool.clone());
    let first = client.start::<OneQueue>(&vec![1, 2]).await.unwrap();
    until_slow_tasks_hold_their_slots(&probe).await;
    let second = client.start::<OneQueue>(&vec![]).await.unwrap();
    let fast = task(&database.pool, second.run_id(), Step::Fast).await;
    assert_eq!((fast.status.as_str(), fast.attempts), ("queued", 0));

    // The first slot that is returned is what it has waited for.
    probe.let_go(1);
    second.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(
        probe.seen_in_order().last().map(String::as_str),
        Some("fast 0")
    );
    probe.let_all_go();
    first.wait().timeout(DEADLINE).await.unwrap();
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn with_a_queue_for_each_step_slow_tasks_that_hold_all_their_slots_keep_nobody_waiting() {
    use queue_per_step::{QueuePerStep, Step};
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let mut workers = Vec::new();
    for &step in Step::ALL {
        let worker = step_worker::<QueuePerStep>(step, probe.clone()).concurrency(SLOTS);
        workers.push(worker.start(&database.pool).await.unwrap());
    }
    let client = Client::new(database.pool.clone());
    let first = client.start::<QueuePerStep>(&vec![1, 2]).await.unwrap();
    until_slow_tasks_hold_their_slots(&probe).await;
    let second = client.start::<QueuePerStep>(&vec![3, 4]).await.unwrap();
    let third = client.start::<QueuePerStep>(&vec![]).await.unwrap();
    // No slot of the slow step was returned.
    third.wait().timeout(DEADLINE).await.unwrap();
    until_task_is(&database.pool, second.run_id(), Step::Fast, "completed").await;
    let waiting = task(&database.pool, second.run_id(), Step::Slow).await;
    assert_eq!((waiting.status.as_str(), waiting.attempts), ("queued", 0));

    probe.let_all_go();
    for run in [&first, &second] {
        run.wait().timeout(DEADLINE).await.unwrap();
    }
    for worker in workers {
        worker.stop().await.unwrap();
    }
    assert_invariants(&database.pool).await;
}
