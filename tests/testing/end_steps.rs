//! Steps that run when the run has ended: a call runs them too, and reports them.

use std::sync::Mutex;

use pgflow::prelude::*;
use pgflow::testing::{AttemptOutcome, TaskStatus, run_to_end};
use serde_json::json;

use super::{assert_nothing_left, outcomes};
use crate::support::TestDb;

/// The ends that end steps received, in the order of their calls.
type Seen = Mutex<Vec<String>>;

struct Orders;

#[flow(input = Vec<u32>, state = Seen)]
impl Orders {
    #[step(map = input)]
    async fn double(item: u32) -> StepResult<u32> {
        Ok(item * 2)
    }

    #[step(depends_on = [double], max_attempts = 1)]
    async fn total(double: &[u32]) -> StepResult<u32> {
        match double.len() {
            0 => Err("nothing to add up".into()),
            _ => Ok(double.iter().sum()),
        }
    }

    #[step(max_attempts = 1)]
    async fn slow(input: &[u32]) -> StepResult<()> {
        if input.is_empty() {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    #[step(on = failure, max_attempts = 2, base_delay = "1h")]
    async fn alarm(end: &RunEnd, input: &[u32], state: &Seen, ctx: &StepContext) -> StepResult<()> {
        let seen = format!(
            "alarm {:?} {:?} {:?} for {} elements",
            end.status,
            end.failed_step,
            end.error,
            input.len()
        );
        state.lock().unwrap().push(seen);
        if ctx.attempt() == 1 {
            return Err("nobody answers".into());
        }
        Ok(())
    }

    #[step(on = end, max_attempts = 1)]
    async fn tidy(end: RunEnd, state: &Seen) -> StepResult<u32> {
        let total = end.output::<u32>(Step::Total)?;
        state
            .lock()
            .unwrap()
            .push(format!("tidy {:?} {total:?}", end.status));
        Err("it can't be tidied".into())
    }
}

#[tokio::test]
async fn a_completed_run_runs_the_one_for_any_end_whose_failure_is_its_own() {
    let db = TestDb::new().await;
    let seen = Seen::default();
    let run = run_to_end::<Orders>(&db.pool, &seen, vec![1, 2])
        .await
        .unwrap();
    assert_eq!(run.error().map(ToString::to_string), None);
    assert_eq!(run.output().unwrap().total, 6);
    assert_eq!(*seen.lock().unwrap(), ["tidy Completed Some(6)"]);
    assert!(run.tasks_of(Step::Alarm).is_empty());
    let tidy = run.task(Step::Tidy, 0).unwrap();
    assert_eq!(
        (tidy.status, tidy.errors()),
        (TaskStatus::Failed, vec!["it can't be tidied"])
    );
    let tidy = run.snapshot().step(Step::Tidy).unwrap();
    assert_eq!(json!(tidy.status), json!("failed"));
    assert!(run.snapshot().step(Step::Alarm).is_none());
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_failed_run_runs_both_and_drops_what_still_ran_first() {
    let db = TestDb::new().await;
    let seen = Seen::default();
    let run = run_to_end::<Orders>(&db.pool, &seen, Vec::new())
        .await
        .unwrap();
    let error = run.error().expect("it failed").to_string();
    assert!(error.contains("nothing to add up"), "{error}");
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    let alarm = r#"alarm Failed Some("total") Some("nothing to add up") for 0 elements"#;
    assert_eq!(seen, [alarm, alarm, "tidy Failed None"]);
    let alarm = run.task(Step::Alarm, 0).unwrap();
    assert_eq!(alarm.status, TaskStatus::Completed);
    assert!(matches!(
        outcomes(alarm)[..],
        [AttemptOutcome::Failed { .. }, AttemptOutcome::Returned]
    ));
    let slow = run.task(Step::Slow, 0).unwrap();
    assert_eq!(slow.status, TaskStatus::Cancelled);
    assert_eq!(outcomes(slow), [&AttemptOutcome::Dropped]);
    assert_nothing_left(&db.pool).await;
}
