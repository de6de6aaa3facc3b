//! The input of a started task: the flow's input, its dependencies' outputs, or an element,
//! unchanged.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::{read, try_start};
use crate::support::TestDb;
use crate::support::flows::{define, start, step, worker, worker_taking_flow_input};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, step_state};

/// Reads the queue, and starts what was read.
async fn start_visible(pool: &PgPool, worker: Uuid) -> Vec<Value> {
    let ids = read(pool, "orders").await;
    try_start(pool, worker, &ids).await.expect("started")
}

fn slug(task: &Value) -> &str {
    task["step_slug"].as_str().expect("a slug")
}

async fn complete_by_sql(pool: &PgPool, task: &Value, output: Value) {
    sqlx::query(
        "select pgflow.complete_task(($1 ->> 'run_id')::uuid, $1 ->> 'step_slug', ($1 ->> 'task_index')::int, $2)",
    )
    .bind(task)
    .bind(output)
    .execute(pool)
    .await
    .expect("completed");
}

/// (step, index, input) of each task.
fn described(tasks: &[Value]) -> Vec<(&str, &Value, &Value)> {
    tasks
        .iter()
        .map(|task| (slug(task), &task["task_index"], &task["input"]))
        .collect()
}

#[tokio::test]
async fn a_dependent_step_gets_the_outputs_of_its_dependencies_and_nothing_else() {
    let db = TestDb::new().await;
    let steps = [
        step("a"),
        step("b"),
        step("unrelated"),
        step("join").deps(&["a", "b"]),
    ];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({"id": 1})).await;
    let worker = worker(&db.pool, "orders").await;
    for task in start_visible(&db.pool, worker).await {
        assert_eq!(task["input"], json!({"id": 1}));
        let output = json!({"of": slug(&task)});
        complete_by_sql(&db.pool, &task, output).await;
    }
    let join = start_visible(&db.pool, worker).await;
    let input = json!({"a": {"of": "a"}, "b": {"of": "b"}});
    assert_eq!(described(&join), [("join", &json!(0), &input)]);
    assert_eq!(step_state(&db.pool, id, "join").await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn elements_of_any_type_reach_root_dependent_and_chained_maps_as_they_are() {
    let db = TestDb::new().await;
    let steps = [
        step("list"),
        step("of_input").map(),
        step("of_list").deps(&["list"]).map(),
        step("of_map").deps(&["of_list"]).map(),
    ];
    define(&db.pool, "orders", &steps).await;
    let elements = json!([
        null, false, -1.5, 1e300, 12_345_678_901_234_567_890_u64, "", "Grüße, \u{1F980}", "\"", [], [[1], [2, [3]]],
        {}, {"a": {"b": [1, null]}}
    ]);
    start(&db.pool, "orders", elements.clone()).await;
    let worker = worker(&db.pool, "orders").await;
    let mut inputs: BTreeMap<String, BTreeMap<u64, Value>> = BTreeMap::new();
    loop {
        let tasks = start_visible(&db.pool, worker).await;
        if tasks.is_empty() {
            break;
        }
        for task in tasks {
            let index = task["task_index"].as_u64().expect("an index");
            let of_step = inputs.entry(slug(&task).to_owned()).or_default();
            of_step.insert(index, task["input"].clone());
            complete_by_sql(&db.pool, &task, task["input"].clone()).await;
        }
    }
    assert_eq!(inputs["list"], BTreeMap::from([(0, elements.clone())]));
    for map in ["of_input", "of_list", "of_map"] {
        let given: Vec<&Value> = inputs[map].values().collect();
        assert_eq!(json!(given), elements, "{map}");
        assert!(inputs[map].keys().copied().eq(0..12), "{map}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_over_150_elements_is_started_in_order_with_the_right_elements() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let elements: Vec<Value> = (0..150)
        .map(|n| json!({"n": n, "square": [n * n]}))
        .collect();
    start(&db.pool, "orders", json!(elements)).await;
    let worker = worker(&db.pool, "orders").await;
    let all: Vec<i64> = messages(&db.pool, "orders")
        .await
        .iter()
        .map(|m| m.id)
        .collect();
    let rows = try_start(&db.pool, worker, &all).await.expect("started");
    let inputs: Vec<&Value> = rows.iter().map(|row| &row["input"]).collect();
    assert_eq!(inputs, elements.iter().collect::<Vec<_>>());
    let indexes: Vec<i64> = rows
        .iter()
        .filter_map(|row| row["task_index"].as_i64())
        .collect();
    assert_eq!(indexes, (0..150).collect::<Vec<_>>());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_flow_s_input_comes_with_registered_steps() {
    let db = TestDb::new().await;
    define(
        &db.pool,
        "orders",
        &[
            step("root"),
            step("each").map(),
            step("other").map(),
            step("next").deps(&["root"]),
            step("not_registered").deps(&["root"]),
        ],
    )
    .await;
    start(&db.pool, "orders", json!([7])).await;
    let worker = worker_taking_flow_input(&db.pool, "orders", &["root", "each", "next"]).await;
    let mut inputs = BTreeMap::new();
    for _ in 0..2 {
        for task in start_visible(&db.pool, worker).await {
            inputs.insert(slug(&task).to_owned(), task["flow_input"].clone());
            complete_by_sql(&db.pool, &task, json!([1])).await;
        }
    }
    let expected = [
        ("each", json!([7])),
        ("next", json!([7])),
        ("not_registered", Value::Null),
        ("other", Value::Null),
        // Its input is the flow's input.
        ("root", Value::Null),
    ];
    assert_eq!(
        inputs,
        BTreeMap::from(expected.map(|(slug, input)| (slug.to_owned(), input)))
    );
    assert_invariants(&db.pool).await;
}
