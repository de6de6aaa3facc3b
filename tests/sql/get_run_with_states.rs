//! `get_run_with_states`: what clients poll.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, define, start, step, worker};
use crate::support::invariants::assert_invariants;

async fn read(pool: &PgPool, run: Uuid) -> Option<Value> {
    sqlx::query_scalar("select pgflow.get_run_with_states($1)")
        .bind(run)
        .fetch_one(pool)
        .await
        .expect("a run can be read")
}

#[tokio::test]
async fn a_run_comes_with_its_steps_in_the_order_of_the_definition() {
    let db = TestDb::new().await;
    let steps = [step("z"), step("m").deps(&["z"]), step("a").deps(&["m"])];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({"id": 1})).await;
    start(&db.pool, "orders", json!({"id": 2})).await;
    let worker = worker(&db.pool, "orders").await;
    let task = claim_one(&db.pool, worker).await;
    complete(&db.pool, &task, json!(0)).await;

    let found = read(&db.pool, id).await.expect("the run exists");
    assert_eq!(found["run"]["input"], json!({"id": 1}));
    assert_eq!(found["run"]["remaining_steps"], 2);
    let states: Vec<[&Value; 3]> = found["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|state| [&state["step_slug"], &state["status"], &state["output"]])
        .collect();
    assert_eq!(
        json!(states),
        json!([
            ["z", "completed", 0],
            ["m", "started", null],
            ["a", "created", null]
        ])
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_of_a_flow_without_steps_has_an_empty_list_and_an_unknown_run_is_null() {
    let db = TestDb::new().await;
    define(&db.pool, "empty", &[]).await;
    let id = start(&db.pool, "empty", json!({})).await;
    let found = read(&db.pool, id).await.expect("the run exists");
    assert_eq!(found["steps"], json!([]));
    assert_eq!(found["run"]["status"], "completed");
    assert_eq!(read(&db.pool, Uuid::now_v7()).await, None);
    assert_invariants(&db.pool).await;
}
