//! Databases that were in use at an older level: upgraded, then served by today's worker.

mod connected;
mod elements;
mod flows;

use std::time::Duration;

use pgflow::migrate::Migrator;
use pgflow::prelude::*;
use pgflow::sqlx::{self, PgPool};
use serde_json::{Value, json};

use crate::support::invariants::{TRANSITION_LOG, assert_invariants};
use crate::support::{TestDb, eventually};
use flows::{plain, step_queued, with_capitals};

pub(crate) const POPULATED_AT_LEVEL_1: &str = include_str!("../fixtures/populated_at_level_1.sql");
pub(crate) const POPULATED_AT_LEVEL_2: &str = include_str!("../fixtures/populated_at_level_2.sql");
pub(crate) const POPULATED_AT_LEVEL_3: &str = include_str!("../fixtures/populated_at_level_3.sql");

/// A database that was populated at an older level, and has been upgraded.
async fn upgraded(level: i32, populated: &'static str) -> TestDb {
    let db = TestDb::blank().await;
    let migrator = Migrator::new();
    migrator.up_to(level).run(&db.pool).await.unwrap();
    sqlx::raw_sql(populated).execute(&db.pool).await.unwrap();
    Migrator::new().run(&db.pool).await.unwrap();
    sqlx::raw_sql(TRANSITION_LOG)
        .execute(&db.pool)
        .await
        .unwrap();
    db
}

/// Waits until no run is under way.
async fn every_run_ends(pool: &PgPool) {
    eventually(Duration::from_mins(1), "every run ends", async || {
        let in_flight: i64 =
            sqlx::query_scalar("select count(*) from pgflow.runs where status = 'started'")
                .fetch_one(pool)
                .await
                .unwrap();
        (in_flight == 0).then_some(())
    })
    .await;
}

/// The last digit of each run's id, its status and output.
async fn ends(pool: &PgPool) -> Vec<(i32, String, Option<Value>)> {
    sqlx::query_as(
        "select right(run_id::text, 1)::int, status, output from pgflow.runs order by run_id",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

fn completed(run: i32, total: u64) -> (i32, String, Option<Value>) {
    (run, "completed".to_owned(), Some(json!({"total": total})))
}

fn failed(run: i32) -> (i32, String, Option<Value>) {
    (run, "failed".to_owned(), None)
}

#[tokio::test]
async fn a_new_worker_finishes_the_runs_of_a_database_populated_at_level_1() {
    let db = upgraded(1, POPULATED_AT_LEVEL_1).await;
    let worker = FlowWorker::<plain::OrderTotals>::new();
    let worker = worker.start(&db.pool).await.unwrap();
    every_run_ends(&db.pool).await;
    worker.stop().await.unwrap();
    // 1 and 2 were waiting, 3 was running on a worker that is gone; 4 and 5 had ended and stay as
    // they were.
    assert_eq!(
        ends(&db.pool).await,
        [
            completed(1, 12),
            completed(2, 12),
            completed(3, 10),
            completed(4, 8),
            failed(5)
        ]
    );
    assert_invariants(&db.pool).await;
}

/// Asserts the ends of the runs of the fixtures of levels 2 and 3.
async fn assert_ended(pool: &PgPool) {
    // 1 had waited, 2 was half through, 3 was running on a worker that is gone, 4 waited for its
    // last attempt; 5 and 6 had ended.
    assert_eq!(
        ends(pool).await,
        [
            completed(1, 12),
            completed(2, 12),
            completed(3, 10),
            completed(4, 12),
            completed(5, 8),
            failed(6)
        ]
    );
    let attempts: String = sqlx::query_scalar(
        "select string_agg(attempts_count::text, ' ' order by run_id) from pgflow.step_tasks where step_slug = 'parse'",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    assert_eq!(attempts, "1 1 2 3 1 3");
    assert_invariants(pool).await;
}

#[tokio::test]
async fn a_new_worker_finishes_the_runs_of_a_database_populated_at_level_2() {
    let db = upgraded(2, POPULATED_AT_LEVEL_2).await;
    let worker = FlowWorker::<with_capitals::OrderTotals>::new();
    let worker = worker.start(&db.pool).await.unwrap();
    every_run_ends(&db.pool).await;
    worker.stop().await.unwrap();
    assert_ended(&db.pool).await;
}

#[tokio::test]
async fn new_step_workers_finish_the_runs_of_a_database_populated_at_level_3() {
    let db = upgraded(3, POPULATED_AT_LEVEL_3).await;
    let workers = StepWorker::<step_queued::OrderTotals>::all();
    let workers = workers.start(&db.pool).await.unwrap();
    every_run_ends(&db.pool).await;
    workers.stop().await.unwrap();
    assert_ended(&db.pool).await;
    // Each step's tasks were those of its own queue.
    let queues: Vec<(String, i64)> = sqlx::query_as(
        "select queue_name, count(*) from pgflow.step_tasks where status = 'completed' group by 1 order by 1",
    )
    .fetch_all(&db.pool)
    .await
    .unwrap();
    let queue = |step: &str, tasks| (format!("ordertotals__{step}"), tasks);
    assert_eq!(
        queues,
        [queue("double", 9), queue("parse", 5), queue("total", 5)]
    );
}
