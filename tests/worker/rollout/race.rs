//! A worker that starts at the very moment when its function is fenced.

use pgflow::{prelude::*, startup::StartupError};

use super::DEADLINE;
use crate::support::{TestDb, eventually, invariants::assert_invariants};

struct Fenced;

#[flow(input = ())]
impl Fenced {
    #[step]
    async fn only() -> StepResult<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_start_that_meets_the_fence_is_told_of_it() {
    let db = TestDb::new().await;
    FlowWorker::<Fenced>::new()
        .start(&db.pool)
        .await
        .unwrap()
        .stop()
        .await
        .unwrap();

    let mut fence = db.pool.begin().await.unwrap();
    sqlx::query("select pgflow.fence_worker_functions(array['fenced'], 'release 42')")
        .execute(&mut *fence)
        .await
        .unwrap();
    let starting = tokio::spawn({
        let pool = db.pool.clone();
        async move { FlowWorker::<Fenced>::new().start(&pool).await }
    });
    eventually(DEADLINE, "the start waits for the fence", async || {
        let waits = "select true from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, bool>(waits)
            .fetch_optional(&db.pool)
            .await
            .unwrap()
    })
    .await;
    fence.commit().await.unwrap();

    let refused = starting.await.unwrap().unwrap_err();
    let StartupError::FunctionDisabled(disabled) = &refused else {
        panic!("{refused}");
    };
    assert!(disabled.is_fenced, "{refused}");
    assert_eq!(disabled.reason.as_deref(), Some("fenced: release 42"));
    assert_invariants(&db.pool).await;
}
