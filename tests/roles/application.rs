//! An application that only starts runs and waits for them.

use pgflow::client::{Client, RunError};
use pgflow::worker::FlowWorker;

use super::recipe_file::Recipe;
use super::{
    DEADLINE, Installed, Orders, assert_may_not_call, assert_writes_nothing, callable, refused, run,
};
use crate::support::invariants::assert_invariants;

#[tokio::test]
async fn it_starts_runs_and_waits_for_them_and_does_nothing_else() {
    let installed = Installed::new().await;
    let worker = FlowWorker::<Orders>::new()
        .start(&installed.worker().await)
        .await
        .expect("the worker starts");
    let recipe = Recipe::read();
    let pool = installed.login(&recipe.application, "app").await;
    let handle = Client::new(pool.clone())
        .start::<Orders>(&vec![1, 2])
        .await
        .expect("a run can be started");
    let output = handle.wait().timeout(DEADLINE).await.expect("it completes");
    assert_eq!(output.sum, (2, 6));
    // A failed run names its step.
    let handle = Client::new(pool.clone())
        .start::<Orders>(&vec![0])
        .await
        .expect("a run can be started");
    match handle.wait().timeout(DEADLINE).await {
        Err(RunError::Failed { step, .. }) => assert_eq!(step.as_deref(), Some("double")),
        other => panic!("{:?}", other.map(|output| output.sum)),
    }
    // Many at once.
    let handles = Client::new(pool.clone())
        .start_many::<Orders>(&[vec![1], vec![2, 3]])
        .await
        .expect("runs can be started");
    for (handle, sum) in handles.into_iter().zip([(1, 2), (2, 10)]) {
        let output = handle.wait().timeout(DEADLINE).await.expect("it completes");
        assert_eq!(output.sum, sum);
    }
    worker.stop().await.expect("the worker stops");

    assert_eq!(callable(&pool).await, ["start_flow", "start_flows"]);
    assert_writes_nothing(&pool).await;
    assert_eq!(
        refused(&pool, "select from pgflow.step_tasks").await,
        "42501: permission denied for table step_tasks"
    );

    assert_may_not_call(
        &pool,
        &[
            "worker_heartbeats('{}')",
            "lost_attempts('{}', '{}', '{}', '{}')",
            "fence_worker_functions('{orders}')",
            "disable_worker_function('orders')",
            "deprecate_workers('{orders}')",
            "ensure_workers()",
        ],
    )
    .await;
    for view in ["worker_status", "live_workers", "started_tasks"] {
        let read = refused(&pool, &format!("select from pgflow.{view}")).await;
        assert_eq!(read, format!("42501: permission denied for view {view}"));
    }

    // What the page says about snapshots.
    handle.snapshot().await.expect_err("it was not granted");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/roles.md"));
    let page = page.expect("the page is there").replace('\n', " ");
    let more = page
        .split("as well: `")
        .nth(1)
        .and_then(|rest| rest.split('`').next())
        .expect("the page says what else is needed");
    let name = installed.name_of("app");
    run(&installed.owner, &more.replace("orders_app", &name)).await;
    handle.snapshot().await.expect("it is granted now");
    assert_invariants(&installed.owner).await;
}
