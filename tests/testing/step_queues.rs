//! Flows with a queue for each step.

use std::time::Duration;

use pgflow::prelude::*;
use pgflow::testing::{AttemptOutcome, run_to_end};

use super::{assert_nothing_left, outcomes};
use crate::support::TestDb;

struct Ingest;

#[flow(input = Vec<String>, state = u64, with_step_queues, base_delay = "1h")]
impl Ingest {
    #[step(map = input)]
    async fn size(item: &str, state: &u64) -> StepResult<u64> {
        Ok(u64::try_from(item.len())? * state)
    }

    #[step(depends_on = [size], start_delay = "1h")]
    async fn sum(size: &[u64], input: &[String], ctx: &StepContext) -> StepResult<u64> {
        assert_eq!(size.len(), input.len());
        if ctx.attempt() == 1 {
            return Err(StepError::retry_after(Duration::from_hours(2), "later"));
        }
        Ok(size.iter().sum())
    }
}

#[tokio::test]
async fn every_queue_is_served() {
    let db = TestDb::new().await;
    let input = vec!["a".to_owned(), "bcd".to_owned()];
    let run = run_to_end::<Ingest>(&db.pool, &10, input).await.unwrap();

    let queues: Vec<String> =
        sqlx::query_scalar("select distinct queue_name from pgflow.step_tasks order by 1")
            .fetch_all(&db.pool)
            .await
            .unwrap();
    assert_eq!(queues, ["ingest__size", "ingest__sum"]);
    let later = AttemptOutcome::Failed {
        message: "later".to_owned(),
        retry_after: Some(Duration::from_hours(2)),
        is_permanent: false,
    };
    let sum = run.task(Step::Sum, 0).unwrap();
    assert_eq!(outcomes(sum), [&later, &AttemptOutcome::Returned]);
    assert_eq!(run.into_output().unwrap().sum, 40);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_worker_of_any_step_is_one_too_many() {
    let db = TestDb::new().await;
    let worker = StepWorker::<Ingest>::with_state(Step::Sum, 1)
        .start(&db.pool)
        .await
        .unwrap();
    let refused = run_to_end::<Ingest>(&db.pool, &10, vec![]).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("step `sum`"), "{error}");
    worker.stop().await.unwrap();
    run_to_end::<Ingest>(&db.pool, &10, vec![]).await.unwrap();
    assert_nothing_left(&db.pool).await;
}
