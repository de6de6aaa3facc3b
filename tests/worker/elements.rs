//! Maps that do without elements that fail, with real workers: types, events, snapshots, and a
//! process that dies.

use pgflow::client::{Client, RunError};
use pgflow::prelude::*;
use pgflow::testing::run_to_end;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use super::{DEADLINE, start};
use crate::support::{TestDb, invariants::assert_invariants};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Page {
    size: u32,
}

/// Fails for good for 0, and for 1 at each attempt.
fn get(item: u32) -> StepResult<Page> {
    match item {
        0 => Err(StepError::permanent("404")),
        1 => Err("500")?,
        size => Ok(Page { size }),
    }
}

struct Crawl;

#[flow(input = Vec<u32>, max_attempts = 2, base_delay = "1s")]
impl Crawl {
    #[step(map = input, on_element_failure = "null")]
    async fn fetch(item: u32) -> StepResult<Page> {
        get(item)
    }

    #[step(map = fetch, on_element_failure = "null", when_exhausted = "skip")]
    async fn double(item: Option<Page>) -> StepResult<u32> {
        let page = item.ok_or_else(|| StepError::permanent("nothing was fetched"))?;
        Ok(page.size * 2)
    }

    #[step(depends_on = [fetch, double])]
    async fn report(
        fetch: &[Option<Page>],
        double: Option<Vec<Option<u32>>>,
    ) -> StepResult<(usize, Option<Vec<Option<u32>>>)> {
        Ok((fetch.iter().flatten().count(), double))
    }

    #[step(map = input, on_element_failure = "null", max_attempts = 1)]
    async fn leaf(item: u32) -> StepResult<u32> {
        if item == 3 {
            Err("no threes")?
        } else {
            Ok(item)
        }
    }
}

async fn failed_tasks(pool: &PgPool) -> Vec<(String, i32, i32, String)> {
    sqlx::query_as(
        "select step_slug, task_index, attempts_count, error_message from pgflow.step_tasks
         where status = 'failed' order by 1, 2",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

fn failed(step: &str, index: i32, attempts: i32, error: &str) -> (String, i32, i32, String) {
    (step.to_owned(), index, attempts, error.to_owned())
}

#[tokio::test]
async fn failed_elements_are_none_for_the_steps_after_the_map() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    let worker = start::<Crawl>(pool, ()).await;
    let run = Client::new(pool.clone())
        .start::<Crawl>(&vec![5, 0, 3, 1])
        .await
        .unwrap();
    let mut events = run.events().await.unwrap();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(
        output.report,
        (2, Some(vec![Some(10), None, Some(6), None]))
    );
    assert_eq!(output.leaf, [Some(5), Some(0), None, Some(1)]);
    assert_eq!(
        failed_tasks(pool).await,
        [
            failed("double", 1, 1, "nothing was fetched"),
            failed("double", 3, 1, "nothing was fetched"),
            failed("fetch", 1, 1, "404"),
            failed("fetch", 3, 2, "500"),
            failed("leaf", 2, 1, "no threes"),
        ]
    );
    let snapshot = run.snapshot().await.unwrap();
    let tasks = snapshot.tasks(Step::Fetch).unwrap();
    assert_eq!((tasks.total, tasks.completed, tasks.failed), (4, 2, 2));
    let tasks = snapshot.tasks(Step::Report).unwrap();
    assert_eq!((tasks.total, tasks.completed, tasks.failed), (1, 1, 0));
    // The element that is tried again holds the map up, while the other three have ended.
    let mut seen = None;
    while let Some(event) = events.next().await {
        if let RunEvent::StepProgressed {
            step: Step::Fetch,
            tasks,
            ..
        } = event.unwrap()
        {
            seen = Some((tasks.completed, tasks.failed));
        }
    }
    if let Some(seen) = seen {
        assert_eq!(seen, (2, 1));
    }
    worker.stop().await.unwrap();
    assert_invariants(pool).await;
}

#[tokio::test]
async fn a_map_in_which_every_element_failed_fails_the_run_and_says_how_many() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    let worker = start::<Crawl>(pool, ()).await;
    let run = Client::new(pool.clone())
        .start::<Crawl>(&vec![0, 0, 0])
        .await
        .unwrap();
    match run.wait().timeout(DEADLINE).await {
        Err(RunError::Failed { message, .. }) => {
            assert!(
                message.starts_with("all 3 elements failed, at last element "),
                "{message}"
            );
            assert!(message.ends_with(": 404"), "{message}");
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
    worker.stop().await.unwrap();
    assert_invariants(pool).await;
}

#[tokio::test]
async fn a_flow_that_is_run_to_its_end_without_a_worker_has_them_too() {
    let database = TestDb::new().await;
    let run = run_to_end::<Crawl>(&database.pool, &(), vec![5, 0])
        .await
        .unwrap();
    let output = run.output().unwrap();
    assert_eq!(output.report, (1, Some(vec![Some(10), None])));
    assert_eq!(output.leaf, [Some(5), Some(0)]);
    let failed = run.task(Step::Fetch, 1).unwrap();
    assert_eq!(failed.attempts.len(), 1);
    assert_invariants(&database.pool).await;
}

/// A unit struct is stored as null.
#[derive(Debug, Serialize, Deserialize)]
struct Done;

struct Nothing;

#[flow(input = Vec<u32>, step_enum = NothingStep)]
impl Nothing {
    #[step(map = input, on_element_failure = "null")]
    async fn notify(item: u32) -> StepResult<Done> {
        assert!(item > 0);
        Ok(Done)
    }
}

#[tokio::test]
async fn an_element_that_is_null_by_itself_fails_for_good() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    let worker = start::<Nothing>(pool, ()).await;
    let run = Client::new(pool.clone())
        .start::<Nothing>(&vec![1])
        .await
        .unwrap();
    let error = run.wait().timeout(DEADLINE).await.map(|_| ()).unwrap_err();
    let expected = "its only element failed: the step's output can't be stored: it is null, which stands for an element that \
                    failed (`on_element_failure = \"null\"`); return something that is never null";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(failed_tasks(pool).await[0].2, 1, "one attempt");
    worker.stop().await.unwrap();
    assert_invariants(pool).await;
}
