//! Steps that run or not.

use pgflow::client::{SkipReason, StepStatus};
use pgflow::prelude::*;
use pgflow::testing::{AttemptOutcome, TaskStatus, run_to_end};
use serde::{Deserialize, Serialize};

use super::{assert_nothing_left, outcomes};
use crate::support::TestDb;

#[derive(Serialize, Deserialize)]
struct Order {
    plan: String,
    stock: bool,
}

fn order(plan: &str, stock: bool) -> Order {
    Order {
        plan: plan.to_owned(),
        stock,
    }
}

struct Orders;

#[flow(input = Order, base_delay = "30s", max_attempts = 3)]
impl Orders {
    #[step(if = { plan: "premium" })]
    async fn gift() -> StepResult<String> {
        Ok("a pen".to_owned())
    }

    /// Fails where there is none.
    #[step(when_exhausted = "skip")]
    async fn stock(input: &Order) -> StepResult<u32> {
        if input.stock { Ok(7) } else { Err("no stock")? }
    }

    #[step(depends_on = [gift, stock])]
    async fn letter(gift: Option<&str>, stock: Option<u32>) -> StepResult<String> {
        Ok(format!("{gift:?} {stock:?}"))
    }

    #[step(depends_on = [gift], if = { gift: "a ship" }, when_unmet = "skip-cascade")]
    async fn harbour() -> StepResult<()> {
        Ok(())
    }

    #[step(depends_on = [harbour])]
    async fn sail() -> StepResult<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_condition_that_holds_lets_its_step_run() {
    let db = TestDb::new().await;
    let run = run_to_end::<Orders>(&db.pool, &(), order("premium", true))
        .await
        .unwrap();
    assert_eq!(run.tasks_of(Step::Gift).len(), 1);
    let output = run.into_output().unwrap();
    assert_eq!(output.letter, r#"Some("a pen") Some(7)"#);
    assert_eq!(output.sail, None);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn what_is_skipped_has_no_tasks_and_what_was_exhausted_has_all_its_attempts() {
    let db = TestDb::new().await;
    let run = run_to_end::<Orders>(&db.pool, &(), order("basic", false))
        .await
        .unwrap();
    let reason = |step| run.snapshot().step(step).unwrap().skip_reason;
    assert_eq!(reason(Step::Gift), Some(SkipReason::ConditionUnmet));
    assert_eq!(reason(Step::Harbour), Some(SkipReason::ConditionUnmet));
    assert_eq!(reason(Step::Sail), Some(SkipReason::DependencySkipped));
    assert_eq!(reason(Step::Stock), Some(SkipReason::HandlerFailed));
    assert_eq!(
        run.snapshot().step(Step::Stock).unwrap().status,
        StepStatus::Skipped
    );
    assert_eq!(run.tasks_of(Step::Gift), []);
    assert_eq!(run.tasks_of(Step::Sail), []);

    let stock = run.task(Step::Stock, 0).unwrap();
    assert_eq!(stock.status, TaskStatus::Failed);
    assert_eq!(stock.errors(), ["no stock"; 3]);
    let letter = run.task(Step::Letter, 0).unwrap();
    assert_eq!(outcomes(letter), [&AttemptOutcome::Returned]);
    assert_eq!(run.into_output().unwrap().letter, "None None");
    assert_nothing_left(&db.pool).await;
}
