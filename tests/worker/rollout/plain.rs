//! New code for a flow with one queue, in place.

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::startup::StartupError;

use super::processes::{Start, Starts, Supervisor};
use super::{
    Callers, Effects, HELD, assert_complete, assert_nothing_was_repeated, clock, fence, function,
    names, uncovered, undrained, unfence, until_drained, until_healthy,
};
use crate::support::{TestDb, eventually, invariants::assert_invariants};
use crate::worker::{DEADLINE, run_sql, worker};

mod v1 {
    use super::*;

    pub(super) struct Orders;

    #[flow(input = Vec<u32>, state = Effects)]
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

    #[flow(input = Vec<u32>, state = Effects)]
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

const V1: Start = |pool, effects| {
    Box::pin(async move {
        let worker = worker::<v1::Orders>(effects);
        Workers::new(&pool).add(worker).start().await
    })
};

const V2: Start = |pool, effects| {
    Box::pin(async move {
        let worker = worker::<v2::Orders>(effects);
        Workers::new(&pool).add(worker).start().await
    })
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn code_is_replaced_behind_the_fence_while_callers_go_on() {
    let (database, effects) = (TestDb::new().await, Effects::new());
    let pool = &database.pool;
    let functions = names(&["orders"]);
    let old = Supervisor::several(3, &database, &effects, V1).await;
    eventually(DEADLINE, "three old workers", async || {
        (undrained(pool, &functions).await.len() == 3).then_some(())
    })
    .await;
    let client = Client::new(pool.clone());
    let callers = Callers::<v1::Orders>::start(pool);
    let held = client.start::<v1::Orders>(&vec![HELD]).await.unwrap();
    effects.until_runs("v1", held.run_id()).await;

    // Fence.
    let fenced = fence(pool, &functions).await;
    assert_eq!(fenced.len(), 1);
    assert!(!fenced[0].enabled);
    assert_eq!(fenced[0].recorded_enabled, Some(true));
    for start in [V1, V2] {
        let error = start(pool.clone(), effects.clone()).await.unwrap_err();
        let StartupError::FunctionDisabled(disabled) = error else {
            panic!("{error}");
        };
        assert_eq!(disabled.reason.as_deref(), Some("fenced: release 2"));
        assert_eq!(disabled.since, fenced[0].fenced_at);
    }

    // Drain: the handler that still runs is waited for.
    eventually(DEADLINE, "the idle old workers stop", async || {
        let left = undrained(pool, &functions).await;
        (left == [("draining".to_owned(), 1)]).then_some(())
    })
    .await;
    effects.let_go();
    until_drained(pool, &functions).await;
    let last = effects.of("v1");
    assert!(!last.is_empty());

    // Work waits, and one sees it.
    eventually(DEADLINE, "new runs wait", async || {
        (uncovered(pool).await == ["orders"]).then_some(())
    })
    .await;

    // Deploy. The supervisors of the old build have tried all the time.
    for mut supervisor in old {
        supervisor.until_refused().await;
        let Starts { done, refused } = supervisor.stop().await;
        assert_eq!(done, 1, "the old build did not come back");
        assert_ne!(refused, 0);
    }
    let deployed_at = clock(pool).await;
    let new = Supervisor::several(2, &database, &effects, V2).await;

    // What was recorded is restored.
    let unfenced = unfence(pool, &functions).await;
    assert_eq!(unfenced, [function(pool, "orders").await]);
    assert_eq!((unfenced[0].enabled, unfenced[0].disabled_at), (true, None));
    assert_eq!(
        (unfenced[0].fenced_at, unfenced[0].recorded_enabled),
        (None, None)
    );
    until_healthy(pool, &functions, deployed_at).await;
    let late = client.start::<v1::Orders>(&vec![1, 2]).await.unwrap();
    let output = late.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(output.total, "v2+v2 by v2");

    let runs = callers.stop().await;
    assert_complete(runs).await;
    held.wait().timeout(DEADLINE).await.unwrap();
    for supervisor in new {
        assert_eq!(supervisor.stop().await.done, 1);
    }
    assert_eq!(
        effects.of("v1"),
        last,
        "the old build ran nothing after its drain"
    );
    assert_nothing_was_repeated(pool, &effects).await;
    assert_invariants(pool).await;
}

#[tokio::test]
async fn a_function_that_was_disabled_before_the_fence_is_disabled_after_it() {
    let (database, effects) = (TestDb::new().await, Effects::new());
    let pool = &database.pool;
    let night = || worker::<v1::Orders>(effects.clone()).function_name("orders_night");
    for worker in [worker::<v1::Orders>(effects.clone()), night()] {
        worker.start(pool).await.unwrap().stop().await.unwrap();
    }
    run_sql(
        pool,
        "select pgflow.disable_worker_function('orders_night', 'too dear')",
    )
    .await;
    let before = function(pool, "orders_night").await;
    assert!(!before.enabled);

    let functions = names(&["orders", "orders_night"]);
    let fenced = fence(pool, &functions).await;
    let recorded: Vec<_> = fenced.iter().map(|row| row.recorded_enabled).collect();
    assert_eq!(recorded, [Some(true), Some(false)]);
    // Once more, by somebody else: what was recorded stays.
    assert_eq!(fence(pool, &functions).await, fenced);

    unfence(pool, &functions).await;
    assert_eq!(function(pool, "orders_night").await, before);
    let error = night().start(pool).await.unwrap_err();
    let StartupError::FunctionDisabled(disabled) = error else {
        panic!("{error}");
    };
    assert_eq!(disabled.reason.as_deref(), Some("too dear"));
    assert_eq!(disabled.since, before.disabled_at);
    let worker = worker::<v2::Orders>(effects.clone()).start(pool).await;
    worker.unwrap().stop().await.unwrap();

    run_sql(pool, "select pgflow.enable_worker_function('orders_night')").await;
    night().start(pool).await.unwrap().stop().await.unwrap();
    assert_invariants(pool).await;
}
