//! A changed shape: a version of its own, beside the old one until that has nothing left to do.

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::startup::StartupError;
use sqlx::PgPool;

use super::processes::{Start, Starts, Supervisor};
use super::{
    Callers, Effects, HELD, assert_complete, clock, names, undrained, until_drained, until_healthy,
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
    }
}

/// Another shape, and a queue for each step, under a slug of its own.
mod v2 {
    use super::*;

    pub(super) struct Orders;

    #[flow(input = Vec<u32>, state = Effects, slug = "orders_v2", with_step_queues)]
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
            state.run("v2", ctx, None).await;
            Ok(price.join("+"))
        }
    }
}

/// The new shape under the old slug.
mod wrong {
    use super::*;

    pub(super) struct Orders;

    #[flow(input = Vec<u32>, state = Effects)]
    impl Orders {
        #[step(map = input)]
        async fn price(item: u32, state: &Effects, ctx: &StepContext) -> StepResult<String> {
            Ok(state.run("wrong", ctx, Some(item)).await)
        }

        #[step(depends_on = [price])]
        async fn total(price: Vec<String>) -> StepResult<usize> {
            Ok(price.len())
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
        let workers = StepWorker::<v2::Orders>::all_with_state(effects);
        let workers = workers.poll_interval(super::POLL);
        Workers::new(&pool).add(workers).start().await
    })
};

/// Returns the number of runs of the flow that have not ended.
async fn running(pool: &PgPool, flow: &str) -> i64 {
    sqlx::query_scalar(
        "select count(*) from pgflow.runs where flow_slug = $1 and status = 'started'",
    )
    .bind(flow)
    .fetch_one(pool)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_version_runs_beside_the_old_one_until_that_has_nothing_left_to_do() {
    let (database, effects) = (TestDb::new().await, Effects::new());
    let pool = &database.pool;
    let (old_function, new_functions) = (
        names(&["orders"]),
        names(&["orders_v2__price", "orders_v2__total"]),
    );
    let old = Supervisor::several(2, &database, &effects, V1).await;
    eventually(DEADLINE, "two old workers", async || {
        (undrained(pool, &old_function).await.len() == 2).then_some(())
    })
    .await;
    let client = Client::new(pool.clone());
    let old_callers = Callers::<v1::Orders>::start(pool);
    let held = client.start::<v1::Orders>(&vec![HELD]).await.unwrap();
    effects.until_runs("v1", held.run_id()).await;

    // Under the old slug it is refused, and nothing happens to those that run.
    let wrong = worker::<wrong::Orders>(effects.clone()).start(pool).await;
    let error = wrong.unwrap_err();
    assert!(matches!(error, StartupError::ShapeMismatch(_)), "{error}");

    // Workers of the new version first, then its callers. Those of the old one switch when they
    // like.
    let since = clock(pool).await;
    let new = Supervisor::several(2, &database, &effects, V2).await;
    until_healthy(pool, &new_functions, since).await;
    let new_callers = Callers::<v2::Orders>::start(pool);
    let both = client.start::<v2::Orders>(&vec![1]).await.unwrap();
    assert_eq!(both.wait().timeout(DEADLINE).await.unwrap().total, "v2");
    let again = client.start::<v1::Orders>(&vec![1]).await.unwrap();
    assert_eq!(again.wait().timeout(DEADLINE).await.unwrap().price, ["v1"]);
    assert_complete(old_callers.stop().await).await;

    // The old runs end.
    assert_eq!(running(pool, "orders").await, 1, "one is held");
    effects.let_go();
    eventually(DEADLINE, "the old runs end", async || {
        (running(pool, "orders").await == 0).then_some(())
    })
    .await;
    let output = held.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(output.price, ["v1"]);

    // The old workers go: asked to stop, and kept from coming back.
    run_sql(
        pool,
        "select pgflow.disable_worker_function('orders', 'replaced by orders_v2');
         select pgflow.deprecate_workers(array['orders'], 'replaced by orders_v2')",
    )
    .await;
    until_drained(pool, &old_function).await;
    for supervisor in old {
        let Starts { done, .. } = supervisor.stop().await;
        assert_eq!(done, 1, "the old version did not come back");
    }
    run_sql(pool, "select pgflow.delete_flow_and_data('orders')").await;
    let error = client.start::<v1::Orders>(&vec![1]).await.unwrap_err();
    assert!(error.to_string().contains("orders"), "{error}");

    // The new version has not noticed.
    assert_complete(new_callers.stop().await).await;
    for supervisor in new {
        let Starts { done, refused } = supervisor.stop().await;
        assert_eq!((done, refused), (1, 0));
    }
    let odd: i64 = sqlx::query_scalar(
        "select count(*) from pgflow.step_tasks where status <> 'completed' or attempts_count - uncounted_attempts <> 1",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    assert_eq!(odd, 0);
    assert!(effects.of("wrong").is_empty());
    assert_invariants(pool).await;
}
