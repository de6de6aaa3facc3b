//! New code for a flow with a queue for each step, in place: the complete set of its functions is
//! fenced as one.

use pgflow::client::Client;
use pgflow::prelude::*;
use sqlx::PgPool;

use super::processes::{Start, Starts, Supervisor, is_disabled};
use super::{
    Callers, Effects, HELD, assert_complete, assert_nothing_was_repeated, clock, fence, names,
    uncovered, undrained, unfence, until_drained, until_healthy,
};
use crate::support::{TestDb, eventually, invariants::assert_invariants};
use crate::worker::DEADLINE;

mod v1 {
    use super::*;

    pub(super) struct Orders;

    #[flow(input = Vec<u32>, state = Effects, with_step_queues)]
    impl Orders {
        #[step(map = input)]
        async fn price(item: u32, state: &Effects, ctx: &StepContext) -> StepResult<String> {
            Ok(state.run("v1", ctx, Some(item)).await)
        }

        #[step(depends_on = [price])]
        async fn total(
            price: Vec<String>,
            state: &Effects,
            ctx: &StepContext,
        ) -> StepResult<String> {
            let by = state.run("v1", ctx, None).await;
            Ok(format!("{} by {by}", price.join(" ")))
        }
    }
}

/// The same shape, other code.
mod v2 {
    use super::*;

    pub(super) struct Orders;

    #[flow(input = Vec<u32>, state = Effects, with_step_queues)]
    impl Orders {
        #[step(map = input)]
        async fn price(item: u32, state: &Effects, ctx: &StepContext) -> StepResult<String> {
            Ok(state.run("v2", ctx, Some(item)).await)
        }

        #[step(depends_on = [price])]
        async fn total(
            price: Vec<String>,
            state: &Effects,
            ctx: &StepContext,
        ) -> StepResult<String> {
            let by = state.run("v2", ctx, None).await;
            Ok(format!("{} by {by}", price.join("+")))
        }
    }
}

/// A process with a worker for each step.
const V1_ALL: Start = |pool, effects| {
    Box::pin(async move {
        let workers = StepWorker::<v1::Orders>::all_with_state(effects);
        let workers = workers.poll_interval(super::POLL);
        Workers::new(&pool).add(workers).start().await
    })
};

/// A process with a worker for one step.
const V1_PRICE: Start = |pool, effects| {
    Box::pin(async move {
        let worker = StepWorker::<v1::Orders>::with_state(v1::Step::Price, effects);
        let worker = worker.poll_interval(super::POLL);
        Workers::new(&pool).add(worker).start().await
    })
};

const V2_PRICE: Start = |pool, effects| {
    Box::pin(async move {
        let worker = StepWorker::<v2::Orders>::with_state(v2::Step::Price, effects);
        let worker = worker.poll_interval(super::POLL);
        Workers::new(&pool).add(worker).start().await
    })
};

const V2_TOTAL: Start = |pool, effects| {
    Box::pin(async move {
        let worker = StepWorker::<v2::Orders>::with_state(v2::Step::Total, effects);
        let worker = worker.poll_interval(super::POLL);
        Workers::new(&pool).add(worker).start().await
    })
};

/// All functions whose workers have served the flow, as the page finds them.
async fn functions_of_flow(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "select distinct function_name from pgflow.workers where flow_slug = 'orders' order by 1",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_complete_set_is_replaced_behind_one_fence_while_callers_go_on() {
    let (database, effects) = (TestDb::new().await, Effects::new());
    let pool = &database.pool;
    let mut old = Supervisor::several(2, &database, &effects, V1_ALL).await;
    let functions = names(&["orders__price", "orders__total"]);
    eventually(DEADLINE, "all steps have workers", async || {
        (undrained(pool, &functions).await.len() == 4).then_some(())
    })
    .await;
    old.push(Supervisor::of(&database, &effects, V1_PRICE).await);
    eventually(DEADLINE, "five workers", async || {
        (undrained(pool, &functions).await.len() == 5).then_some(())
    })
    .await;
    assert_eq!(functions_of_flow(pool).await, functions);
    let client = Client::new(pool.clone());
    let callers = Callers::<v1::Orders>::start(pool);
    let held = client.start::<v1::Orders>(&vec![HELD]).await.unwrap();
    effects.until_runs("v1", held.run_id()).await;

    let fenced = fence(pool, &functions).await;
    assert!(fenced.iter().all(|row| !row.enabled), "{fenced:?}");
    for start in [V1_ALL, V1_PRICE, V2_PRICE, V2_TOTAL] {
        let error = start(pool.clone(), effects.clone()).await.unwrap_err();
        assert!(is_disabled(&error), "{error}");
    }
    eventually(DEADLINE, "the idle old workers stop", async || {
        let left = undrained(pool, &functions).await;
        (left == [("draining".to_owned(), 1)]).then_some(())
    })
    .await;
    effects.let_go();
    until_drained(pool, &functions).await;
    let last = effects.of("v1");
    eventually(DEADLINE, "new runs wait for both steps", async || {
        let waiting = uncovered(pool).await;
        waiting.contains(&"orders__price".to_owned()).then_some(())
    })
    .await;

    for mut supervisor in old {
        supervisor.until_refused().await;
        let Starts { done, refused } = supervisor.stop().await;
        assert_eq!(done, 1, "the old build did not come back");
        assert_ne!(refused, 0);
    }
    let deployed_at = clock(pool).await;
    let mut new = vec![Supervisor::of(&database, &effects, V2_PRICE).await];
    unfence(pool, &functions).await;
    until_healthy(pool, &functions[..1], deployed_at).await;

    // One process is missing: nothing fails, and one sees it.
    let late = client.start::<v1::Orders>(&vec![1, 2]).await.unwrap();
    eventually(DEADLINE, "the second step waits for a worker", async || {
        (uncovered(pool).await == ["orders__total"]).then_some(())
    })
    .await;
    new.push(Supervisor::of(&database, &effects, V2_TOTAL).await);
    until_healthy(pool, &functions, deployed_at).await;
    let output = late.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(output.total, "v2+v2 by v2");

    assert_complete(callers.stop().await).await;
    held.wait().timeout(DEADLINE).await.unwrap();
    for supervisor in new {
        supervisor.stop().await;
    }
    assert_eq!(
        effects.of("v1"),
        last,
        "the old build ran nothing after its drain"
    );
    assert_nothing_was_repeated(pool, &effects).await;
    assert_invariants(pool).await;
}
