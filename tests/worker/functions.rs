//! The registration of a worker's function, and the obstacles to its start.

use pgflow::prelude::*;
use pgflow::startup::{FunctionDisabled, StartupError};
use pgflow::worker::StartMode;
use sqlx::PgPool;

use super::{run_sql, worker};
use crate::support::TestDb;

struct Small;

#[flow(input = ())]
impl Small {
    #[step]
    async fn only() -> StepResult<()> {
        Ok(())
    }
}

async fn start_mode(pool: &PgPool) -> String {
    sqlx::query_scalar(
        "select start_mode from pgflow.worker_functions where function_name = 'small'",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn the_start_mode_is_that_of_the_last_start() {
    let database = TestDb::new().await;
    for (mode, stored) in [(StartMode::Http, "http"), (StartMode::Process, "process")] {
        let worker = worker::<Small>(()).start_mode(mode);
        let worker = worker.start(&database.pool).await.unwrap();
        assert_eq!(start_mode(&database.pool).await, stored);
        worker.stop().await.unwrap();
    }
    let steps = Workers::new(&database.pool).add(worker::<Small>(()));
    let workers = steps.start().await.unwrap();
    assert_eq!(start_mode(&database.pool).await, "process");
    workers.stop().await.unwrap();
}

async fn refused(pool: &PgPool) -> FunctionDisabled {
    match worker::<Small>(()).start(pool).await {
        Err(StartupError::FunctionDisabled(disabled)) => disabled,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_fenced_function_does_not_start_until_the_fence_ends() {
    let database = TestDb::new().await;
    super::define::<Small>(&database.pool, ()).await;
    run_sql(
        &database.pool,
        "select pgflow.fence_worker_functions(array['small'], 'build 12')",
    )
    .await;
    let fenced = refused(&database.pool).await;
    assert!(fenced.is_fenced && fenced.since.is_some());
    let text = fenced.to_string();
    assert!(text.contains("is fenced since"), "{text}");
    assert!(text.contains("(fenced: build 12)"), "{text}");
    assert!(text.contains("`pgflow workers unfence small`"), "{text}");
    run_sql(
        &database.pool,
        "select pgflow.unfence_worker_functions(array['small'])",
    )
    .await;
    let worker = worker::<Small>(()).start(&database.pool).await.unwrap();
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_disabled_function_names_both_ways_to_enable_it() {
    let database = TestDb::new().await;
    super::define::<Small>(&database.pool, ()).await;
    run_sql(
        &database.pool,
        "select pgflow.disable_worker_function('small', 'it burns')",
    )
    .await;
    let disabled = refused(&database.pool).await;
    assert!(!disabled.is_fenced);
    let text = disabled.to_string();
    assert!(text.contains("(it burns)"), "{text}");
    assert!(text.contains("`pgflow workers enable small`"), "{text}");
    // As the text says.
    run_sql(
        &database.pool,
        "select pgflow.enable_worker_function('small')",
    )
    .await;
    super::define::<Small>(&database.pool, ()).await;
}
