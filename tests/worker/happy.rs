//! Flows of every form run to their end.

use std::time::Duration;

use pgflow::client::{Client, StepStatus};
use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

use super::{DEADLINE, define, start};
use crate::support::{TestDb, invariants::assert_invariants};

mod chain {
    use super::*;

    /// Steps one after the other, and a state that they share.
    pub(super) struct Chain;

    #[flow(input = i64, state = i64, output_derive = [Debug, PartialEq])]
    impl Chain {
        #[step]
        async fn add(input: i64, state: &i64) -> StepResult<i64> {
            Ok(input + state)
        }

        #[step(depends_on = [add])]
        async fn double(add: i64) -> StepResult<i64> {
            Ok(add * 2)
        }

        #[step(depends_on = [double])]
        async fn describe(double: i64, input: i64, ctx: &StepContext) -> anyhow::Result<String> {
            let fetched: i64 = ctx.flow_input().await?;
            Ok(format!("{input} ({fetched}) became {double}"))
        }
    }
}

#[tokio::test]
async fn a_chain() {
    let database = TestDb::new().await;
    let worker = start::<chain::Chain>(&database.pool, 10).await;
    let run = Client::new(database.pool.clone())
        .start::<chain::Chain>(&1)
        .await
        .unwrap();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(output.describe, "1 (1) became 22");
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

mod endless {
    use super::*;

    /// Its attempts may take as long as their worker lives.
    pub(super) struct Endless;

    #[flow(input = (), timeout = "none")]
    impl Endless {
        #[step]
        async fn wait(ctx: &StepContext) -> StepResult<u64> {
            Ok(ctx.remaining().as_secs())
        }
    }
}

#[tokio::test]
async fn a_step_without_a_timeout_has_all_the_time_in_the_world() {
    let database = TestDb::new().await;
    let worker = start::<endless::Endless>(&database.pool, ()).await;
    let run = Client::new(database.pool.clone())
        .start::<endless::Endless>(&())
        .await
        .unwrap();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert!(output.wait > 60 * 365 * 86_400, "{} s", output.wait);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_step_that_becomes_ready_needs_no_poll() {
    let database = TestDb::new().await;
    define::<chain::Chain>(&database.pool, 0).await;
    let run = Client::new(database.pool.clone())
        .start::<chain::Chain>(&1)
        .await
        .unwrap();
    let worker = FlowWorker::<chain::Chain>::with_state(1)
        .poll_interval(Duration::from_hours(1))
        .start(&database.pool)
        .await
        .unwrap();
    run.wait().timeout(DEADLINE).await.unwrap();
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_run_that_this_process_starts_needs_no_poll() {
    let database = TestDb::new().await;
    let worker = FlowWorker::<chain::Chain>::with_state(1)
        .poll_interval(Duration::from_hours(1))
        .start(&database.pool)
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    // The worker sleeps before the second run at the latest.
    for _ in 0..2 {
        let run = client.start::<chain::Chain>(&1).await.unwrap();
        run.wait().timeout(DEADLINE).await.unwrap();
    }
    worker.stop().await.unwrap();
}

mod diamond {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    pub(super) struct Numbers {
        pub(super) numbers: Vec<u32>,
        pub(super) plan: String,
    }

    /// Parallel branches, a map, an order-only dependency, and a step that is skipped.
    pub(super) struct Diamond;

    #[flow(input = Numbers)]
    impl Diamond {
        #[step]
        async fn split(input: &Numbers) -> StepResult<Vec<u32>> {
            Ok(input.numbers.clone())
        }

        #[step(map = split)]
        async fn square(item: u32, input: &Numbers, ctx: &StepContext) -> StepResult<u32> {
            assert_eq!(input.numbers[usize::try_from(ctx.task_index())?], item);
            Ok(item * item)
        }

        #[step(depends_on = [split])]
        async fn count(split: &[u32]) -> StepResult<usize> {
            Ok(split.len())
        }

        #[step(if = { plan: "premium" })]
        async fn extra(_input: &Numbers) -> StepResult<()> {
            Ok(())
        }

        #[step(depends_on = [square, count, extra])]
        async fn sum(
            square: &[u32],
            count: usize,
            extra: Option<()>,
        ) -> StepResult<(u32, usize, bool)> {
            Ok((square.iter().sum(), count, extra.is_some()))
        }
    }
}

async fn run_diamond(numbers: Vec<u32>, plan: &str) -> ((u32, usize, bool), StepStatus) {
    use diamond::{Diamond, Numbers, Step};
    let database = TestDb::new().await;
    let worker = start::<Diamond>(&database.pool, ()).await;
    let input = Numbers {
        numbers,
        plan: plan.to_owned(),
    };
    let run = Client::new(database.pool.clone())
        .start::<Diamond>(&input)
        .await
        .unwrap();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    let snapshot = run.snapshot().await.unwrap();
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
    (output.sum, snapshot.step(Step::Extra).unwrap().status)
}

#[tokio::test]
async fn a_diamond_with_a_map() {
    assert_eq!(
        run_diamond((1..=30).collect(), "premium").await,
        ((9455, 30, true), StepStatus::Completed)
    );
}

#[tokio::test]
async fn an_empty_map_and_a_skipped_step() {
    assert_eq!(
        run_diamond(Vec::new(), "free").await,
        ((0, 0, false), StepStatus::Skipped)
    );
}

mod root_map {
    use super::*;

    /// A map over the input, and outputs of unusual forms.
    pub(super) struct RootMap;

    #[flow(input = Vec<Option<bool>>)]
    impl RootMap {
        #[step(map = input)]
        async fn echo(item: Option<bool>) -> StepResult<Option<bool>> {
            Ok(item)
        }

        #[step(depends_on = [echo])]
        async fn nothing() -> StepResult<()> {
            Ok(())
        }
    }
}

#[tokio::test]
async fn a_map_over_the_input_keeps_order_and_nulls() {
    let database = TestDb::new().await;
    let worker = start::<root_map::RootMap>(&database.pool, ()).await;
    let input = vec![Some(false), None, Some(true)];
    let run = Client::new(database.pool.clone())
        .start::<root_map::RootMap>(&input)
        .await
        .unwrap();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    let () = output.nothing;
    let snapshot = run.snapshot().await.unwrap();
    let echo = snapshot.step(root_map::Step::Echo).unwrap();
    assert_eq!(echo.output.as_ref().unwrap().get(), "[false, null, true]");
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}
