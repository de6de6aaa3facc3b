//! Flows with a queue for each step, from definition to the end of their runs.

mod claims;
mod explain;
mod start_tasks;

use serde_json::json;

use crate::support::TestDb;
use crate::support::flows::{
    claim, claim_one, complete, define_with_step_queues, raw_claim, start, step, step_worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, count, messages, run, show_all};
use crate::support::runs::{fail_for_good, outline};

#[tokio::test]
async fn each_step_has_a_queue_of_its_own_and_the_flow_has_none() {
    let db = TestDb::new().await;
    let steps = [step("Fetch"), step("each").map().deps(&["Fetch"])];
    define_with_step_queues(&db.pool, "Orders", &steps).await;
    let routes: Vec<(String, String)> =
        sqlx::query_as("select step_slug, queue_name from pgflow.steps order by step_index")
            .fetch_all(&db.pool)
            .await
            .expect("steps can be read");
    let expected = [("Fetch", "orders__fetch"), ("each", "orders__each")]
        .map(|(step, queue)| (step.to_owned(), queue.to_owned()));
    assert_eq!(routes, expected);
    let queues: Vec<String> =
        sqlx::query_scalar("select queue_name::text from pgmq.meta order by 1")
            .fetch_all(&db.pool)
            .await
            .expect("queues can be read");
    assert_eq!(queues, ["orders__each", "orders__fetch"]);
}

#[tokio::test]
async fn a_run_goes_through_the_queues_of_its_steps() {
    let db = TestDb::new().await;
    let steps = [
        step("fetch"),
        step("each").map().deps(&["fetch"]),
        step("sum").deps(&["each"]),
    ];
    define_with_step_queues(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let [fetch, each, sum] = [
        step_worker(&db.pool, "orders", "fetch").await,
        step_worker(&db.pool, "orders", "each").await,
        step_worker(&db.pool, "orders", "sum").await,
    ];
    assert!(claim(&db.pool, each, 10).await.is_empty());
    let first = claim_one(&db.pool, fetch).await;
    assert_eq!(first.queue_name, "orders__fetch");
    complete(&db.pool, &first, json!([1, 2])).await;
    assert_eq!(messages(&db.pool, "orders__each").await.len(), 2);
    for task in claim(&db.pool, each, 10).await {
        complete(&db.pool, &task, task.input.clone()).await;
    }
    let last = claim_one(&db.pool, sum).await;
    assert_eq!(last.input, json!({"each": [1, 2]}));
    complete(&db.pool, &last, json!(3)).await;
    assert_eq!(run(&db.pool, id).await.output, Some(json!({"sum": 3})));
    for (queue, ids) in [
        ("orders__fetch", vec![1]),
        ("orders__each", vec![1, 2]),
        ("orders__sum", vec![1]),
    ] {
        assert_eq!(archived(&db.pool, queue).await, ids, "{queue}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failed_run_archives_the_messages_of_every_queue() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b"), step("c").map().deps(&["a"])];
    define_with_step_queues(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let a = step_worker(&db.pool, "orders", "a").await;
    let task = claim_one(&db.pool, a).await;
    complete(&db.pool, &task, json!([1, 2])).await;
    let b = step_worker(&db.pool, "orders", "b").await;
    let culprit = claim_one(&db.pool, b).await;
    fail_for_good(&db.pool, &culprit, "no").await;
    assert_eq!(
        outline(&db.pool, id).await,
        "run failed, a completed, b failed, c started"
    );
    for (queue, ids) in [
        ("orders__a", vec![1]),
        ("orders__b", vec![1]),
        ("orders__c", vec![1, 2]),
    ] {
        assert_eq!(messages(&db.pool, queue).await, [], "{queue}");
        assert_eq!(archived(&db.pool, queue).await, ids, "{queue}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_cascade_archives_the_messages_of_every_queue_it_skips() {
    let db = TestDb::new().await;
    let steps = [
        step("a").max_attempts(1).when_exhausted("skip-cascade"),
        step("b"),
        step("c").deps(&["a"]),
    ];
    define_with_step_queues(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let a = step_worker(&db.pool, "orders", "a").await;
    let culprit = claim_one(&db.pool, a).await;
    fail_for_good(&db.pool, &culprit, "no").await;
    assert_eq!(
        outline(&db.pool, id).await,
        "run started, a skipped: handler_failed, b started, c skipped: dependency_skipped"
    );
    assert_eq!(messages(&db.pool, "orders__a").await, []);
    assert_eq!(messages(&db.pool, "orders__b").await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn retries_and_recovery_use_the_queue_of_the_task() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let a = step_worker(&db.pool, "orders", "a").await;
    let first = claim_one(&db.pool, a).await;
    crate::support::flows::fail(&db.pool, &first, "again").await;
    let second = claim_one(&db.pool, a).await;
    assert_eq!((second.attempt, second.message_id), (2, first.message_id));
    crate::support::runs::age(&db.pool, id, "a", 3600).await;
    assert_eq!(crate::support::runs::requeue(&db.pool).await, 1);
    let third = claim_one(&db.pool, a).await;
    assert_eq!((third.attempt, third.message_id), (3, first.message_id));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_same_message_id_in_two_queues_means_two_tasks() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    start(&db.pool, "orders", json!({})).await;
    for slug in ["a", "b"] {
        let worker = step_worker(&db.pool, "orders", slug).await;
        let task = claim_one(&db.pool, worker).await;
        assert_eq!((task.step_slug.as_str(), task.message_id), (slug, 1));
        assert_eq!(complete(&db.pool, &task, json!(1)).await, "completed");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_message_in_the_queue_of_another_step_is_fatal_to_its_worker() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    start(&db.pool, "orders", json!({})).await;
    sqlx::raw_sql(
        "update pgflow.step_tasks set queue_name = 'orders__b', message_id = 99 where step_slug = 'a';
         insert into pgmq.q_orders__b (msg_id, vt, message) overriding system value
         select 99, now(), message from pgmq.q_orders__a",
    )
    .execute(&db.pool)
    .await
    .expect("rows can be changed by hand");
    let b = step_worker(&db.pool, "orders", "b").await;
    show_all(&db.pool, "orders__b").await;
    let rows = raw_claim(&db.pool, b, 10).await;
    let reason: String = sqlx::Row::get(&rows[0], "reason");
    assert_eq!(
        (rows.len(), reason.as_str()),
        (
            1,
            "its task belongs to step \"a\", this worker serves step \"b\""
        )
    );
}

#[tokio::test]
async fn deleting_a_flow_drops_the_queue_of_each_step() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    start(&db.pool, "orders", json!({})).await;
    sqlx::raw_sql("select pgflow.delete_flow_and_data('orders')")
        .execute(&db.pool)
        .await
        .expect("deleted");
    assert_eq!(count(&db.pool, "pgmq.meta").await, 0);
    assert_eq!(count(&db.pool, "pgflow.flows").await, 0);
}
