//! The warning of steps that no worker serves, and what else step workers log.

use std::time::Duration;

use pgflow::prelude::*;

use super::step_worker;
use crate::support::TestDb;
use crate::support::eventually;
use crate::worker::capture::{Capture, capture};

struct Ingest;

#[flow(input = u32, with_step_queues)]
impl Ingest {
    #[step]
    async fn fetch(input: u32) -> StepResult<u32> {
        Ok(input)
    }

    #[step(depends_on = [fetch])]
    async fn embed(fetch: u32) -> StepResult<u32> {
        Ok(fetch)
    }

    #[step(depends_on = [embed], slug = "storeIt")]
    async fn store(embed: u32) -> StepResult<u32> {
        Ok(embed)
    }
}

const WARNING: &str = "no worker serves these steps";

/// Waits for so many warnings, which come some seconds after a start.
async fn warnings(logged: &Capture, count: usize) -> Vec<String> {
    eventually(Duration::from_secs(20), "the warnings", async || {
        let lines = logged.lines(WARNING);
        (lines.len() >= count).then_some(lines)
    })
    .await
}

#[tokio::test]
async fn steps_that_are_served_within_a_moment_are_not_missed() {
    let database = TestDb::new().await;
    let logged = capture();
    let mut workers = Vec::new();
    // As processes of one deployment start: each of them alone would miss the others.
    for step in [Step::Embed, Step::Fetch] {
        let worker = step_worker::<Ingest>(step, ()).start(&database.pool).await;
        workers.push(worker.unwrap());
    }
    for line in warnings(&logged, 2).await {
        assert!(line.contains("WARN"), "{line}");
        assert!(line.contains("flow=\"ingest\""), "{line}");
        assert!(line.contains("steps=\"storeIt\""), "{line}");
    }
    for worker in workers {
        worker.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_worker_that_has_stopped_or_is_lost_serves_nothing() {
    let database = TestDb::new().await;
    let fetch = step_worker::<Ingest>(Step::Fetch, ())
        .start(&database.pool)
        .await;
    fetch.unwrap().stop().await.unwrap();
    let lost = "select pgflow.track_worker_function('lost');
        select pgflow.register_worker(gen_random_uuid(), 'lost', 'ingest', 'storeIt', 'ingest__storeit', '{}');
        update pgflow.workers set last_heartbeat_at = now() - interval '7 seconds' where function_name = 'lost'";
    crate::worker::run_sql(&database.pool, lost).await;
    let logged = capture();
    let embed = step_worker::<Ingest>(Step::Embed, ())
        .start(&database.pool)
        .await;
    let line = warnings(&logged, 1).await.remove(0);
    assert!(line.contains("steps=\"fetch, storeIt\""), "{line}");
    embed.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn all_steps_together_are_looked_at_when_all_have_started() {
    let database = TestDb::new().await;
    let logged = capture();
    let workers = StepWorker::<Ingest>::all().start(&database.pool).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(logged.lines(WARNING), [""; 0]);
    workers.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn several_workers_in_one_process_warn_once() {
    let database = TestDb::new().await;
    let logged = capture();
    let workers = Workers::new(&database.pool)
        .add(step_worker::<Ingest>(Step::Fetch, ()))
        .add(step_worker::<Ingest>(Step::Store, ()))
        .start()
        .await;
    let lines = warnings(&logged, 1).await;
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("steps=\"embed\""), "{lines:?}");
    workers.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn every_event_says_which_step_the_worker_serves() {
    let database = TestDb::new().await;
    let logged = capture();
    let worker = step_worker::<Ingest>(Step::Store, ()).concurrency(3);
    let worker = worker.start(&database.pool).await.unwrap();
    let worker_id = worker.worker_id();
    worker.stop().await.unwrap();
    let span = format!(
        "pgflow.worker{{flow=\"ingest\" step=\"storeIt\" queue=\"ingest__storeit\" worker_id={worker_id}}}"
    );
    let started = logged.line("worker started");
    for part in [
        "flow=\"ingest\"",
        "step=\"storeIt\"",
        "queue=\"ingest__storeit\"",
        "function=\"ingest__storeit\"",
        "concurrency=3",
        "definition=\"compiled\"",
        span.as_str(),
    ] {
        assert_eq!(started.matches(part).count(), 1, "{part} in {started}");
    }
    let stopped = logged.line("worker stopped");
    assert!(stopped.contains(&span), "{stopped}");
}
