//! Conditions and exhausted attempts, with handlers that really run: which steps do, and what those
//! after them get.

use std::{collections::HashMap, time::Duration};

use pgflow::client::Client;
use pgflow::prelude::*;
use serde_json::json;

use super::{DEADLINE, start, task};
use crate::support::{TestDb, eventually, invariants::assert_invariants, runs::outline};

mod order {
    use super::*;

    /// A step for each way in which a condition can decide.
    pub(super) struct Order;

    #[flow(input = serde_json::Value)]
    impl Order {
        #[step(if = { banned: false }, when_unmet = "fail")]
        async fn check() -> StepResult<()> {
            Ok(())
        }

        #[step(if = { plan: "pro" })]
        async fn gift() -> StepResult<HashMap<String, u32>> {
            Ok(HashMap::from([("weight".to_owned(), 3)]))
        }

        #[step(depends_on = [gift], if_not = { gift: {} })]
        async fn no_gift() -> StepResult<String> {
            Ok("none".to_owned())
        }

        #[step(depends_on = [gift])]
        async fn weigh(gift: Option<HashMap<String, u32>>) -> StepResult<u32> {
            Ok(1 + gift.map_or(0, |gift| gift["weight"]))
        }

        #[step(if_not = { country: "nowhere" }, when_unmet = "skip-cascade")]
        async fn ship() -> StepResult<u32> {
            Ok(7)
        }

        #[step(depends_on = [ship])]
        async fn track(ship: u32) -> StepResult<u32> {
            Ok(ship)
        }
    }
}

/// Runs an order to its end; returns what became of it and its output.
async fn ordered(input: serde_json::Value) -> (String, Option<serde_json::Value>) {
    let database = TestDb::new().await;
    let worker = start::<order::Order>(&database.pool, ()).await;
    let client = Client::new(database.pool.clone());
    let run = client.start::<order::Order>(&input).await.unwrap();
    let run_id = run.run_id();
    eventually(DEADLINE, "the run ends", async || {
        let ended = "select output from pgflow.runs where run_id = $1 and status <> 'started'";
        sqlx::query_scalar::<_, Option<serde_json::Value>>(ended)
            .bind(run_id)
            .fetch_optional(&database.pool)
            .await
            .unwrap()
    })
    .await;
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
    let output = sqlx::query_scalar("select output from pgflow.runs where run_id = $1")
        .bind(run_id)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    (outline(&database.pool, run_id).await, output)
}

#[tokio::test]
async fn steps_whose_conditions_hold_run() {
    let input = json!({"plan": "pro", "country": "de", "banned": false});
    let (outline, output) = ordered(input).await;
    assert_eq!(
        outline,
        "run completed, check completed, gift completed, no_gift skipped: condition_unmet, weigh completed, \
         ship completed, track completed"
    );
    assert_eq!(output, Some(json!({"check": null, "weigh": 4, "track": 7})));
}

#[tokio::test]
async fn a_dependent_of_a_skipped_step_runs_without_it_and_its_fallback_runs_instead() {
    let input = json!({"plan": "free", "country": "de", "banned": false});
    let (outline, output) = ordered(input).await;
    assert_eq!(
        outline,
        "run completed, check completed, gift skipped: condition_unmet, no_gift completed, weigh completed, \
         ship completed, track completed"
    );
    assert_eq!(
        output,
        Some(json!({"check": null, "no_gift": "none", "weigh": 1, "track": 7}))
    );
}

#[tokio::test]
async fn a_cascade_skips_what_depends_on_the_skipped_step() {
    let input = json!({"plan": "pro", "country": "nowhere", "banned": false});
    let (outline, output) = ordered(input).await;
    assert_eq!(
        outline,
        "run completed, check completed, gift completed, no_gift skipped: condition_unmet, weigh completed, \
         ship skipped: condition_unmet, track skipped: dependency_skipped"
    );
    assert_eq!(output, Some(json!({"check": null, "weigh": 4})));
}

#[tokio::test]
async fn an_unmet_condition_may_fail_the_run_before_any_handler_runs() {
    let input = json!({"plan": "pro", "country": "de", "banned": true});
    let (outline, output) = ordered(input).await;
    assert_eq!(
        outline,
        "run failed, check failed, gift created, no_gift created, weigh created, ship created, track created"
    );
    assert_eq!(output, None);
}

mod fragile {
    use super::*;

    /// Steps that always fail, in each mode but that which fails the run.
    pub(super) struct Fragile;

    #[flow(input = Vec<u32>, max_attempts = 2)]
    impl Fragile {
        #[step(when_exhausted = "skip")]
        async fn optional() -> StepResult<u32> {
            Err(StepError::retry_after(Duration::ZERO, "no luck"))
        }

        #[step(depends_on = [optional])]
        async fn without(optional: Option<u32>) -> StepResult<bool> {
            Ok(optional.is_none())
        }

        #[step(when_exhausted = "skip-cascade")]
        async fn first() -> StepResult<u32> {
            Err(StepError::retry_after(Duration::ZERO, "no luck either"))
        }

        #[step(depends_on = [first])]
        async fn second(first: u32) -> StepResult<u32> {
            Ok(first)
        }

        #[step(map = input, when_exhausted = "skip")]
        async fn each(item: u32) -> StepResult<u32> {
            if item == 2 {
                return Err(StepError::retry_after(Duration::ZERO, "not two"));
            }
            Ok(item)
        }

        #[step(map = each)]
        async fn again(item: u32) -> StepResult<u32> {
            Ok(item)
        }
    }
}

#[tokio::test]
async fn exhausted_handlers_skip_their_steps_and_the_run_completes() {
    let database = TestDb::new().await;
    let worker = start::<fragile::Fragile>(&database.pool, ()).await;
    let client = Client::new(database.pool.clone());
    let run = client
        .start::<fragile::Fragile>(&vec![1, 2, 3])
        .await
        .unwrap();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!((output.without, output.second), (true, None));
    assert_eq!(
        output.again,
        Vec::<u32>::new(),
        "a skipped map is an empty list"
    );
    assert_eq!(
        outline(&database.pool, run.run_id()).await,
        "run completed, optional skipped: handler_failed, without completed, first skipped: handler_failed, \
         second skipped: dependency_skipped, each skipped: handler_failed, again completed"
    );
    let exhausted = task(&database.pool, run.run_id(), fragile::Step::Optional).await;
    assert_eq!(
        (exhausted.status.as_str(), exhausted.attempts),
        ("failed", 2)
    );
    assert_eq!(exhausted.error_message.as_deref(), Some("no luck"));
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}
