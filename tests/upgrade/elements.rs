//! Maps that were under way when they could not yet do without elements that fail.

use pgflow::migrate::Migrator;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use super::connected::{FUNCTIONS_AT_LEVEL_9, at_level};
use crate::support::flows::{Claimed, claim, complete, fail, shape, start, step};
use crate::support::invariants::{TRANSITION_LOG, assert_invariants};
use crate::support::rows::{count, run};
use crate::support::runs::outline;

async fn execute(pool: &PgPool, sql: &'static str) {
    sqlx::raw_sql(sql).execute(pool).await.unwrap();
}

#[tokio::test]
async fn maps_that_were_under_way_fail_and_complete_as_before() {
    let db = at_level(9, FUNCTIONS_AT_LEVEL_9).await;
    let pool = &db.pool;
    execute(
        pool,
        "select pgflow.create_flow('maps', max_attempts => 1);
         select pgflow.add_step('maps', 'm', step_type => 'map')",
    )
    .await;
    let runs = [
        start(pool, "maps", json!([1, 2])).await,
        start(pool, "maps", json!([1, 2])).await,
    ];
    let worker = Uuid::now_v7();
    sqlx::query("select pgflow.register_worker($1, 'w', 'maps', null, 'maps', '{}')")
        .bind(worker)
        .execute(pool)
        .await
        .unwrap();
    let tasks: Vec<Claimed> = claim(pool, worker, 10).await;
    assert_eq!(tasks.len(), 4);
    complete(pool, &tasks[0], json!("a")).await;
    complete(pool, &tasks[2], json!("c")).await;

    let report = Migrator::new().run(pool).await.unwrap();
    assert_eq!(report.from_version, 9);
    execute(pool, TRANSITION_LOG).await;
    assert_eq!(
        count(pool, "pgflow.steps where on_element_failure = 'fail'").await,
        3
    );
    assert_eq!(
        count(pool, "pgflow.step_states where failed_tasks = 0").await,
        2
    );
    assert_eq!(fail(pool, &tasks[1], "no").await, "failed");
    complete(pool, &tasks[3], json!("d")).await;
    assert_eq!(outline(pool, runs[0]).await, "run failed, m failed");
    assert_eq!(
        run(pool, runs[1]).await.output,
        Some(json!({"m": ["c", "d"]}))
    );

    // A worker of that release still sends this shape.
    let compiled: Value = sqlx::query_scalar("select pgflow.ensure_flow_compiled('maps', $1)")
        .bind(shape(&[step("m").map()]))
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!(compiled["status"], "verified");
    assert_invariants(pool).await;
}
