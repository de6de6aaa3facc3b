//! The warning of steps that nobody serves, and what else step workers log.

use pgflow::prelude::*;

use super::step_worker;
use crate::support::TestDb;
use crate::worker::capture::capture;

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

#[tokio::test]
async fn the_first_worker_names_the_steps_without_one_and_the_last_has_none_to_name() {
    let database = TestDb::new().await;
    let mut workers = Vec::new();
    for (step, missing) in [
        (Step::Embed, Some("fetch, storeIt")),
        (Step::Fetch, Some("storeIt")),
        (Step::Store, None),
    ] {
        let logged = capture();
        let worker = step_worker::<Ingest>(step, ()).start(&database.pool).await;
        workers.push(worker.unwrap());
        let Some(missing) = missing else {
            assert_eq!(logged.lines(WARNING), [""; 0]);
            continue;
        };
        let line = logged.line(WARNING);
        assert!(line.contains("WARN"), "{line}");
        assert!(line.contains("flow=\"ingest\""), "{line}");
        assert!(line.contains(&format!("steps=\"{missing}\"")), "{line}");
    }
    // A worker that has stopped, is deprecated or is dead serves nothing.
    let again = async |expected: &str| {
        let logged = capture();
        let worker = step_worker::<Ingest>(Step::Embed, ())
            .start(&database.pool)
            .await;
        worker.unwrap().stop().await.unwrap();
        let line = logged.line(WARNING);
        assert!(line.contains(&format!("steps=\"{expected}\"")), "{line}");
    };
    workers.remove(1).stop().await.unwrap();
    again("fetch").await;
    let rest = "update pgflow.workers set last_heartbeat_at = now() - interval '7 seconds' where step_slug = 'storeIt'";
    crate::worker::run_sql(&database.pool, rest).await;
    again("fetch, storeIt").await;
    for worker in workers {
        worker.stop().await.unwrap();
    }
}

#[tokio::test]
async fn all_steps_together_are_looked_at_when_all_have_started() {
    let database = TestDb::new().await;
    let logged = capture();
    let workers = StepWorker::<Ingest>::all().start(&database.pool).await;
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
    let line = logged.line(WARNING);
    assert!(line.contains("steps=\"embed\""), "{line}");
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
