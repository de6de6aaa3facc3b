//! Databases that were in use at an older level: upgraded, then served by today's worker.

use std::time::Duration;

use pgflow::{
    migrate::Migrator,
    prelude::*,
    sqlx::{self, PgPool},
};

use crate::support::{
    TestDb, eventually,
    invariants::{TRANSITION_LOG, assert_invariants},
};

const POPULATED_AT_LEVEL_1: &str = include_str!("../fixtures/populated_at_level_1.sql");

/// The flow of the fixture, as today's code says it.
#[derive(Debug)]
struct OrderTotals;

#[flow(input = Vec<u64>)]
impl OrderTotals {
    #[step]
    async fn parse(input: &[u64]) -> StepResult<Vec<u64>> {
        Ok(input.to_vec())
    }

    #[step(map = parse)]
    async fn double(item: u64) -> StepResult<u64> {
        Ok(item * 2)
    }

    #[step(depends_on = [double])]
    async fn total(double: &[u64]) -> StepResult<u64> {
        Ok(double.iter().sum())
    }
}

#[tokio::test]
async fn a_new_worker_finishes_the_runs_of_a_database_populated_at_level_1() {
    let db = TestDb::blank().await;
    let migrator = Migrator::new();
    migrator.up_to(1).run(&db.pool).await.unwrap();
    sqlx::raw_sql(POPULATED_AT_LEVEL_1)
        .execute(&db.pool)
        .await
        .unwrap();

    migrator.run(&db.pool).await.unwrap();
    sqlx::raw_sql(TRANSITION_LOG)
        .execute(&db.pool)
        .await
        .unwrap();
    let worker = FlowWorker::<OrderTotals>::new()
        .start(&db.pool)
        .await
        .unwrap();
    eventually(Duration::from_mins(1), "every run ends", async || {
        let started = ends(&db.pool).await;
        started
            .iter()
            .all(|(_, status, _)| status != "started")
            .then_some(())
    })
    .await;
    worker.stop().await.unwrap();

    // 1 and 2 were waiting, 3 was running on a worker that is gone; 4 and 5 had ended and stay as they were.
    let total = |n: u64| Some(serde_json::json!({ "total": n }));
    let expected = [
        (1, "completed", total(12)),
        (2, "completed", total(12)),
        (3, "completed", total(10)),
        (4, "completed", total(8)),
        (5, "failed", None),
    ];
    assert_eq!(
        ends(&db.pool).await,
        expected.map(|(run, status, output)| (run, status.to_owned(), output))
    );
    assert_invariants(&db.pool).await;
}

/// The last digit of each run's id, its status and output.
async fn ends(pool: &PgPool) -> Vec<(i32, String, Option<serde_json::Value>)> {
    sqlx::query_as(
        "select right(run_id::text, 1)::int, status, output from pgflow.runs order by run_id",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}
