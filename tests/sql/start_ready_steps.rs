//! Steps that become ready: their tasks, their messages, and when those can be read.

use serde_json::{Value, json};

use crate::support::TestDb;
use crate::support::flows::{claim, claim_one, complete, define, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, step_state, tasks};

#[tokio::test]
async fn a_completed_source_makes_one_task_and_one_message_for_each_element() {
    let db = TestDb::new().await;
    let steps = [step("list"), step("each").deps(&["list"]).map()];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let list = claim_one(&db.pool, worker).await;
    complete(&db.pool, &list, json!(["x", {"y": 1}, null])).await;

    let state = step_state(&db.pool, id, "each").await;
    assert_eq!(state.status, "started");
    assert_eq!(
        (state.initial_tasks, state.remaining_tasks),
        (Some(3), Some(3))
    );
    let tasks = tasks(&db.pool, id, "each").await;
    assert!(
        tasks
            .iter()
            .all(|task| task.status == "queued" && task.attempts_count == 0)
    );
    let messages = messages(&db.pool, "orders").await;
    assert_eq!(
        messages
            .iter()
            .map(|message| Some(message.id))
            .collect::<Vec<_>>(),
        tasks.iter().map(|task| task.message_id).collect::<Vec<_>>()
    );
    let bodies: Vec<&Value> = messages.iter().map(|message| &message.body).collect();
    let expected: Vec<Value> = (0..3)
        .map(|n| json!({"flow_slug": "orders", "run_id": id, "step_slug": "each", "task_index": n}))
        .collect();
    assert_eq!(bodies, expected.iter().collect::<Vec<_>>());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_starts_when_its_last_dependency_has_completed_and_not_before() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b"), step("join").deps(&["a", "b"])];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    complete(&db.pool, &claimed[0], json!(1)).await;
    let waiting = step_state(&db.pool, id, "join").await;
    assert_eq!(
        (waiting.status.as_str(), waiting.remaining_deps),
        ("created", 1)
    );
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 2);
    complete(&db.pool, &claimed[1], json!(2)).await;
    let started = step_state(&db.pool, id, "join").await;
    assert_eq!(
        (started.status.as_str(), started.remaining_deps),
        ("started", 0)
    );
    assert_eq!(tasks(&db.pool, id, "join").await.len(), 1);
    let ordered: bool =
        sqlx::query_scalar("select bool_and(started_at >= created_at) from pgflow.step_states")
            .fetch_one(&db.pool)
            .await
            .expect("states can be read");
    assert!(ordered);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_that_starts_with_others_keeps_its_own_start_delay() {
    let db = TestDb::new().await;
    let steps = [
        step("list"),
        step("now").deps(&["list"]),
        step("soon").deps(&["list"]).start_delay(60),
        step("each").deps(&["list"]).map().start_delay(900),
    ];
    define(&db.pool, "orders", &steps).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let list = claim_one(&db.pool, worker).await;
    complete(&db.pool, &list, json!([1, 2])).await;
    let mut delays: Vec<(String, i64)> = messages(&db.pool, "orders")
        .await
        .iter()
        .map(|m| {
            (
                m.body["step_slug"].as_str().expect("a slug").to_owned(),
                m.visible_after(m.enqueued_at),
            )
        })
        .collect();
    delays.sort();
    let expected = [("each", 900), ("each", 900), ("now", 0), ("soon", 60)];
    assert_eq!(
        delays,
        expected.map(|(slug, delay)| (slug.to_owned(), delay))
    );
    let claimable = claim(&db.pool, worker, 10).await;
    assert_eq!(claimable.len(), 1);
    assert_eq!(claimable[0].step_slug, "now");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_over_a_map_is_sized_when_its_source_completes() {
    let db = TestDb::new().await;
    let steps = [step("first").map(), step("second").deps(&["first"]).map()];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!(["a", "b"])).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    // Last one first: order is that of the elements, not of time.
    complete(&db.pool, &claimed[1], json!({"of": "b"})).await;
    assert_eq!(step_state(&db.pool, id, "second").await.initial_tasks, None);
    complete(&db.pool, &claimed[0], json!({"of": "a"})).await;
    let second = step_state(&db.pool, id, "second").await;
    assert_eq!(
        (second.status.as_str(), second.initial_tasks),
        ("started", Some(2))
    );
    let inputs: Vec<Value> = claim(&db.pool, worker, 2)
        .await
        .into_iter()
        .map(|t| t.input)
        .collect();
    assert_eq!(inputs, [json!({"of": "a"}), json!({"of": "b"})]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_batch_that_completes_several_runs_starts_the_next_steps_of_each() {
    let db = TestDb::new().await;
    let steps = [step("list"), step("each").deps(&["list"]).map()];
    define(&db.pool, "orders", &steps).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(start(&db.pool, "orders", json!({})).await);
    }
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 3).await;
    sqlx::query(
        "select pgflow.complete_tasks($1, array['list', 'list', 'list'], array[0, 0, 0], array[1, 1, 1], array['[1]', '[2, 3]', '[]']::jsonb[])",
    )
    .bind(claimed.iter().map(|task| task.run_id).collect::<Vec<_>>())
    .execute(&db.pool)
    .await
    .expect("completed");
    for (task, sizes) in claimed.iter().zip([1, 2, 0]) {
        assert_eq!(tasks(&db.pool, task.run_id, "each").await.len(), sizes);
    }
    assert_invariants(&db.pool).await;
}
