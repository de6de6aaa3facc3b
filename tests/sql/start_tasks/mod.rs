//! `start_tasks`, for workers that read their queue by themselves: claims what is queued, leaves
//! the rest. What a started task is given is in `inputs`, how its attempts follow each other in
//! `attempts`, what a claim costs in `cost`.

mod attempts;
mod cost;
mod inputs;

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim, complete, define, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, raised, show_all, task, tasks};
use crate::support::sessions::{holding, without_waiting};

/// Reads up to ten messages as a worker of another language does; returns their ids.
pub(super) async fn read(pool: &PgPool, queue: &str) -> Vec<i64> {
    sqlx::query_scalar("select msg_id from pgmq.read($1, 30, 10)")
        .bind(queue)
        .fetch_all(pool)
        .await
        .expect("the queue can be read")
}

pub(super) async fn try_start(
    pool: &PgPool,
    worker: Uuid,
    ids: &[i64],
) -> sqlx::Result<Vec<Value>> {
    sqlx::query_scalar(
        "select to_jsonb(t) from pgflow.start_tasks(flow_slug => 'orders', msg_ids => $1, worker_id => $2, queue_name => 'orders') t",
    )
    .bind(ids)
    .bind(worker)
    .fetch_all(pool)
    .await
}

/// (step, index) of each task that was started.
pub(super) async fn started(pool: &PgPool, worker: Uuid, ids: &[i64]) -> Vec<(String, i64)> {
    let rows = try_start(pool, worker, ids)
        .await
        .expect("tasks can be started");
    let name = |row: &Value| row["step_slug"].as_str().map(str::to_owned);
    rows.iter()
        .map(|row| {
            (
                name(row).expect("a slug"),
                row["task_index"].as_i64().expect("an index"),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_queued_task_is_started_and_described() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(7).timeout(9)]).await;
    let id = start(&db.pool, "orders", json!({"id": 1})).await;
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    let rows = try_start(&db.pool, worker, &ids).await.expect("started");
    let expected = json!({
        "flow_slug": "orders", "run_id": id, "step_slug": "a", "input": {"id": 1}, "msg_id": ids[0], "task_index": 0,
        "flow_input": null, "attempt": 1, "max_attempts": 7, "timeout": 9,
    });
    assert_eq!(rows, [expected]);
    let stored = task(&db.pool, id, "a").await;
    assert_eq!(
        (stored.status.as_str(), stored.attempts_count),
        ("started", 1)
    );
    assert_eq!(stored.last_worker_id, Some(worker));
    let since_start: i32 = sqlx::query_scalar(
        "select floor(extract(epoch from q.vt - t.started_at))::int from pgflow.step_tasks t join pgmq.q_orders q on q.msg_id = t.message_id",
    )
    .fetch_one(&db.pool)
    .await
    .expect("times can be read");
    assert_eq!(
        since_start, 11,
        "the effective timeout and 2 s, not what it was read with"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_read_is_counted_once() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    try_start(&db.pool, worker, &ids).await.expect("started");
    assert_eq!(messages(&db.pool, "orders").await[0].read_count, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_is_not_queued_is_not_claimable() {
    let db = TestDb::new().await;
    let steps = [
        step("done"),
        step("failed").max_attempts(1).when_exhausted("skip"),
        step("running"),
        step("waiting"),
    ];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 3).await;
    complete(&db.pool, &claimed[0], json!(1)).await;
    fail(&db.pool, &claimed[1], "no").await;
    let ids: Vec<i64> = vec![1, 2, 3, 4, 4, 99];
    let expected = ("waiting".to_owned(), 0);
    assert_eq!(started(&db.pool, worker, &ids).await, [expected]);
    assert!(started(&db.pool, worker, &ids).await.is_empty());
    assert!(started(&db.pool, worker, &[]).await.is_empty());
    for slug in ["running", "waiting"] {
        assert_eq!(task(&db.pool, id, slug).await.attempts_count, 1);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_sibling_of_a_task_that_skipped_their_step_can_not_be_started() {
    let db = TestDb::new().await;
    let each = step("each").map().max_attempts(1).when_exhausted("skip");
    define(&db.pool, "orders", &[each, step("other")]).await;
    let id = start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    assert_eq!(ids.len(), 3);
    let first = claim_first(&db.pool, worker, id).await;
    sqlx::query("select pgflow.fail_task($1, 'each', 0, 'no')")
        .bind(first)
        .execute(&db.pool)
        .await
        .expect("failed");
    let expected = ("other".to_owned(), 0);
    assert_eq!(started(&db.pool, worker, &ids).await, [expected]);
    let statuses: Vec<String> = tasks(&db.pool, id, "each")
        .await
        .into_iter()
        .map(|t| t.status)
        .collect();
    assert_eq!(statuses, ["failed", "skipped"]);
    assert_invariants(&db.pool).await;
}

/// Starts the first task of step `each`; returns its run.
async fn claim_first(pool: &PgPool, worker: Uuid, run: Uuid) -> Uuid {
    let message = tasks(pool, run, "each").await[0]
        .message_id
        .expect("a message");
    assert_eq!(
        started(pool, worker, &[message]).await,
        [("each".to_owned(), 0)]
    );
    run
}

#[tokio::test]
async fn an_empty_queue_has_nothing_to_start() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    assert!(ids.is_empty());
    assert!(started(&db.pool, worker, &ids).await.is_empty());
    assert!(started(&db.pool, worker, &[1, 2]).await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_locked_task_is_left_alone() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    let holder = holding(
        &db.pool,
        "select from pgflow.step_tasks where task_index = 0 for no key update",
    )
    .await;
    let unlocked = without_waiting(started(&db.pool, worker, &ids)).await;
    assert_eq!(unlocked, [("each".to_owned(), 1)]);
    holder.rollback().await.expect("released");
    assert_eq!(
        started(&db.pool, worker, &ids).await,
        [("each".to_owned(), 0)]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_that_can_not_hide_every_message_changes_nothing() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let id = start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    let before = tasks(&db.pool, id, "each").await;
    sqlx::query("delete from pgmq.q_orders where msg_id = $1")
        .bind(ids[1])
        .execute(&db.pool)
        .await
        .expect("lost");
    let left = messages(&db.pool, "orders").await[0].visible_at;
    assert_eq!(
        raised(try_start(&db.pool, worker, &ids).await),
        "PF008: queue \"orders\" has 1 of the 2 messages that a claim was to hide"
    );
    assert_eq!(tasks(&db.pool, id, "each").await, before);
    assert_eq!(messages(&db.pool, "orders").await[0].visible_at, left);
}

#[tokio::test]
async fn a_task_of_another_flow_in_the_queue_is_not_touched() {
    let db = TestDb::new().await;
    for flow in ["orders", "other"] {
        define(&db.pool, flow, &[step("a")]).await;
    }
    let other = start(&db.pool, "other", json!({})).await;
    sqlx::query(
        "with sent as (select pgmq.send('orders', '{}') as id)
         update pgflow.step_tasks set queue_name = 'orders', message_id = sent.id from sent",
    )
    .execute(&db.pool)
    .await
    .expect("moved");
    let worker = worker(&db.pool, "orders").await;
    let ids = read(&db.pool, "orders").await;
    assert_eq!(ids.len(), 1);
    assert!(started(&db.pool, worker, &ids).await.is_empty());
    assert_eq!(task(&db.pool, other, "a").await.status, "queued");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn only_a_registered_running_worker_may_start_tasks() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let ids = read(&db.pool, "orders").await;
    let unknown = Uuid::now_v7();
    let stopped = worker(&db.pool, "orders").await;
    sqlx::query("update pgflow.workers set stopped_at = now()")
        .execute(&db.pool)
        .await
        .expect("stopped");
    for id in [unknown, stopped] {
        assert_eq!(
            raised(try_start(&db.pool, id, &ids).await),
            format!("PF007: worker {id} is not registered, or has stopped")
        );
    }
    let deprecated = worker(&db.pool, "orders").await;
    sqlx::query("update pgflow.workers set deprecated_at = now() where worker_id = $1")
        .bind(deprecated)
        .execute(&db.pool)
        .await
        .expect("deprecated");
    assert!(started(&db.pool, deprecated, &ids).await.is_empty());
    show_all(&db.pool, "orders").await;
    let fresh = worker(&db.pool, "orders").await;
    assert_eq!(claim(&db.pool, fresh, 1).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn flow_queue_and_step_must_fit_together() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[step("a")]).await;
    start(&db.pool, "Orders", json!({})).await;
    let worker = worker(&db.pool, "Orders").await;
    for (flow, queue, step, message) in [
        (
            "orders",
            "orders",
            None,
            "PF001: flow \"orders\" is not defined in this database",
        ),
        (
            "Orders",
            "Orders",
            None,
            "PF009: flow \"Orders\" uses queue \"orders\", not \"Orders\"",
        ),
        (
            "Orders",
            "other",
            None,
            "PF009: flow \"Orders\" uses queue \"orders\", not \"other\"",
        ),
        (
            "Orders",
            "orders",
            Some("a"),
            "PF009: flow \"Orders\" has one queue for all its steps; start_tasks takes no step_slug for it",
        ),
    ] {
        let call = sqlx::query("select pgflow.start_tasks($1, array[1::bigint], $2, $3, $4)")
            .bind(flow)
            .bind(worker)
            .bind(queue)
            .bind(step);
        assert_eq!(raised(call.execute(&db.pool).await), message);
    }
    assert_eq!(messages(&db.pool, "orders").await[0].read_count, 0);
    assert_invariants(&db.pool).await;
}
