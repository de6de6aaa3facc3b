//! The input of a claimed task: the flow's input, its dependencies' outputs, an element; and the
//! flow's input in addition if it is wanted.

use serde_json::{Value, json};

use crate::support::TestDb;
use crate::support::flows::{
    claim, claim_one, complete, define, drain, fail, start, step, worker, worker_taking_flow_input,
};
use crate::support::invariants::assert_invariants;
use crate::support::runs::database_with;

#[tokio::test]
async fn a_root_gets_the_flow_s_input_whatever_json_it_is() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    for input in [
        json!(0),
        json!(false),
        json!(""),
        json!(null),
        json!([]),
        json!({"a": [null]}),
    ] {
        start(&db.pool, "orders", input.clone()).await;
        assert_eq!(claim_one(&db.pool, worker).await.input, input);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_dependent_step_gets_an_object_of_the_outputs_of_its_own_dependencies() {
    let db = TestDb::new().await;
    let steps = [
        step("zero"),
        step("no"),
        step("empty"),
        step("nothing"),
        step("unrelated"),
        step("join").deps(&["nothing", "zero", "empty", "no"]),
    ];
    define(&db.pool, "orders", &steps).await;
    start(&db.pool, "orders", json!({"id": 1})).await;
    let worker = worker(&db.pool, "orders").await;
    for task in claim(&db.pool, worker, 5).await {
        let output = match task.step_slug.as_str() {
            "zero" => json!(0),
            "no" => json!(false),
            "empty" => json!(""),
            "nothing" => json!(null),
            other => json!(other),
        };
        complete(&db.pool, &task, output).await;
    }
    assert_eq!(
        claim_one(&db.pool, worker).await.input,
        json!({"zero": 0, "no": false, "empty": "", "nothing": null})
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_skipped_dependency_is_an_absent_key() {
    let db = TestDb::new().await;
    let steps = [
        step("a"),
        step("unmet").required(json!({"plan": "pro"})),
        step("broken").max_attempts(1).when_exhausted("skip"),
        step("join").deps(&["a", "unmet", "broken"]),
        step("alone").deps(&["unmet"]),
    ];
    define(&db.pool, "orders", &steps).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    for task in claim(&db.pool, worker, 3).await {
        match task.step_slug.as_str() {
            "a" => complete(&db.pool, &task, json!(1)).await,
            "broken" => fail(&db.pool, &task, "no").await,
            _ => {
                assert_eq!(task.input, json!({}), "{}", task.step_slug);
                complete(&db.pool, &task, json!(2)).await
            }
        };
    }
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({"a": 1}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_task_gets_its_element() {
    let db = TestDb::new().await;
    let steps = [
        step("over_input").map(),
        step("list"),
        step("over_list").deps(&["list"]).map(),
        step("over_map").deps(&["over_list"]).map(),
    ];
    define(&db.pool, "orders", &steps).await;
    let elements = json!([{"a": 1}, [1, [2]], null, "é", 0]);
    start(&db.pool, "orders", elements.clone()).await;
    let worker = worker(&db.pool, "orders").await;
    let mut inputs = std::collections::BTreeMap::<String, Vec<Value>>::new();
    drain(&db.pool, worker, |task| {
        if task.step_slug == "list" {
            assert_eq!(task.input, elements);
            return elements.clone();
        }
        inputs
            .entry(task.step_slug.clone())
            .or_default()
            .push(task.input.clone());
        json!([task.input])
    })
    .await;
    let wrapped: Vec<Value> = elements
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| json!([e]))
        .collect();
    assert_eq!(json!(inputs["over_input"]), elements);
    assert_eq!(json!(inputs["over_list"]), elements);
    assert_eq!(inputs["over_map"], wrapped);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_flow_s_input_is_delivered_to_registered_steps_only_and_never_twice() {
    let db = TestDb::new().await;
    let steps = [
        step("root"),
        step("root_map").map(),
        step("next").deps(&["root"]),
        step("next_map").deps(&["root"]).map(),
        step("not_registered").deps(&["root"]),
    ];
    define(&db.pool, "orders", &steps).await;
    start(&db.pool, "orders", json!([7])).await;
    let registered = ["root", "root_map", "next", "next_map", "of_another_flow"];
    let worker = worker_taking_flow_input(&db.pool, "orders", &registered).await;
    let mut delivered = std::collections::BTreeMap::new();
    drain(&db.pool, worker, |task| {
        delivered.insert(task.step_slug.clone(), task.flow_input.clone());
        json!([1])
    })
    .await;
    let expected = [
        ("next", Some(json!([7]))),
        ("next_map", Some(json!([7]))),
        ("not_registered", None),
        // Its input is the flow's input.
        ("root", None),
        ("root_map", Some(json!([7]))),
    ];
    assert_eq!(
        delivered.into_iter().collect::<Vec<_>>(),
        expected.map(|(slug, input)| (slug.to_owned(), input))
    );
    assert_invariants(&db.pool).await;
}

/// Raising would block the queue permanently: each claim would come upon this task first.
#[tokio::test]
async fn outputs_that_are_together_too_large_for_one_object_are_told_to_the_handler() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b"),
        step("join").deps(&["a", "b"]).max_attempts(1),
        step("last").deps(&["a", "b"]).required(json!({"a": 1})),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    let tasks = claim(&db.pool, worker, 2).await;
    assert_eq!(complete(&db.pool, &tasks[0], json!(1)).await, "completed");
    // Half of what JSON can hold, each.
    sqlx::query("update pgflow.step_states set output = to_jsonb(repeat('x', 134217728)) where step_slug = 'a'")
        .execute(&db.pool)
        .await
        .expect("an output can be large");
    let large = "select from pgflow.complete_task($1, 'b', 0, to_jsonb(repeat('x', 134217728)))";
    sqlx::query(large)
        .bind(tasks[1].run_id)
        .execute(&db.pool)
        .await
        .expect("completed");
    let next = start(&db.pool, "f", json!({})).await;

    let claimed = claim(&db.pool, worker, 3).await;
    assert_eq!(claimed[2].run_id, next);
    for task in &claimed[..2] {
        assert_eq!(
            task.input,
            json!({"[pgflow: unreadable]": "the outputs of the dependencies are together larger than a JSON value can be (256 MB); \
                return less, or keep large data elsewhere and return where it lies"})
        );
    }
    assert_eq!(fail(&db.pool, &claimed[0], "no").await, "failed");
    assert_invariants(&db.pool).await;
}

/// A worker that takes the flow's input once for each run of a claim.
async fn worker_sharing_flow_input(pool: &sqlx::PgPool, steps: &[&str]) -> uuid::Uuid {
    let worker = worker_taking_flow_input(pool, "orders", steps).await;
    sqlx::query("update pgflow.workers set flow_input_once = true where worker_id = $1")
        .bind(worker)
        .execute(pool)
        .await
        .unwrap();
    worker
}

#[tokio::test]
async fn the_flow_s_input_comes_once_for_each_run_to_a_worker_that_shares_it() {
    let db = TestDb::new().await;
    let steps = [
        step("list"),
        step("root"),
        step("other_root"),
        step("each").deps(&["list"]).map(),
        step("without").deps(&["list"]),
    ];
    define(&db.pool, "orders", &steps).await;
    let worker = worker_sharing_flow_input(&db.pool, &["list", "root", "each"]).await;
    let runs = [
        start(&db.pool, "orders", json!({"id": 1})).await,
        start(&db.pool, "orders", json!({"id": 2})).await,
    ];
    let inputs = |tasks: &[crate::support::flows::Claimed], run| {
        let of_run = tasks.iter().filter(|task| task.run_id == run);
        let with = of_run.filter_map(|task| task.flow_input.clone());
        with.collect::<Vec<Value>>()
    };
    let roots = claim(&db.pool, worker, 10).await;
    assert_eq!(roots.len(), 6);
    assert_eq!(inputs(&roots, runs[0]), [json!({"id": 1})]);
    assert_eq!(inputs(&roots, runs[1]), [json!({"id": 2})]);
    for task in &roots {
        let output = if task.step_slug == "list" {
            json!([1, 2, 3])
        } else {
            json!(null)
        };
        complete(&db.pool, task, output).await;
    }
    // In two claims: each is complete by itself.
    for _ in 0..2 {
        let tasks = claim(&db.pool, worker, 4).await;
        let of_map = tasks.iter().any(|task| task.step_slug == "each");
        let with: usize = runs.iter().map(|&run| inputs(&tasks, run).len()).sum();
        let runs_with_map = runs
            .iter()
            .filter(|&&run| {
                tasks
                    .iter()
                    .any(|task| task.run_id == run && task.step_slug == "each")
            })
            .count();
        assert!(of_map);
        assert_eq!(with, runs_with_map);
    }
    assert_invariants(&db.pool).await;
}
