//! View `coverage`: a row per queue of a flow, with who serves it and what waits in it.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    claim_one, define, define_with_step_queues, start, step, step_worker, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

/// The rows of the view, in its own order, times left out.
async fn coverage(pool: &PgPool) -> Vec<Value> {
    sqlx::query_scalar(
        "select to_jsonb(c) - 'last_heartbeat_at' - 'oldest_waiting_at' from pgflow.coverage c",
    )
    .fetch_all(pool)
    .await
    .expect("the view can be read")
}

/// A row of the view as [`coverage`] gives it.
fn row(flow: &str, step: Option<&str>, live: i64, waiting: Option<i64>) -> Value {
    let (mode, queue) = match step {
        Some(step) => ("step", format!("{flow}__{step}").to_lowercase()),
        None => ("flow", flow.to_lowercase()),
    };
    json!({
        "flow_slug": flow, "queue_mode": mode, "step_slug": step, "queue_name": queue,
        "is_covered": live > 0, "live_workers": live, "waiting_messages": waiting,
    })
}

async fn set_worker(pool: &PgPool, worker: Uuid, change: &'static str) {
    let changed = sqlx::query(AssertSqlSafe(format!(
        "update pgflow.workers set {change} where worker_id = $1"
    )))
    .bind(worker)
    .execute(pool)
    .await
    .expect("rows can be changed");
    assert_eq!(changed.rows_affected(), 1);
}

#[tokio::test]
async fn no_flow_has_no_row() {
    let db = TestDb::new().await;
    assert_eq!(coverage(&db.pool).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_plain_flow_has_one_row_and_a_step_queued_one_a_row_for_each_step_in_their_order() {
    let db = TestDb::new().await;
    define(&db.pool, "Zoo", &[step("b"), step("a")]).await;
    define(&db.pool, "empty", &[]).await;
    define_with_step_queues(&db.pool, "Orders", &[step("Z"), step("a").deps(&["Z"])]).await;
    start(&db.pool, "Zoo", json!({})).await;
    start(&db.pool, "Orders", json!({})).await;
    let mut rows = coverage(&db.pool).await;
    // Flows are ordered as the database orders text.
    rows.sort_by_key(|row| row["flow_slug"].as_str().map(str::to_owned));
    let expected = [
        row("Orders", Some("Z"), 0, Some(1)),
        row("Orders", Some("a"), 0, Some(0)),
        row("Zoo", None, 0, Some(2)),
        row("empty", None, 0, Some(0)),
    ];
    assert_eq!(rows, expected);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_that_was_routed_elsewhere_by_hand_has_a_row_of_its_own() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b")]).await;
    worker(&db.pool, "orders").await;
    sqlx::raw_sql(
        "select pgmq.create('elsewhere');
         update pgflow.steps set queue_name = 'elsewhere' where step_slug = 'b'",
    )
    .execute(&db.pool)
    .await
    .expect("routes can be changed by hand");
    start(&db.pool, "orders", json!({})).await;
    let elsewhere = json!({
        "flow_slug": "orders", "queue_mode": "flow", "step_slug": "b", "queue_name": "elsewhere",
        "is_covered": false, "live_workers": 0, "waiting_messages": 1,
    });
    assert_eq!(
        coverage(&db.pool).await,
        [row("orders", None, 1, Some(1)), elsewhere]
    );
}

#[tokio::test]
async fn only_live_workers_of_the_queue_itself_cover_it() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    define(&db.pool, "plain", &[step("a")]).await;
    let covered = async || {
        let rows = coverage(&db.pool).await;
        rows.iter()
            .map(|row| row["live_workers"].as_i64().expect("a number"))
            .collect::<Vec<_>>()
    };
    let [first, second, third] = [
        step_worker(&db.pool, "orders", "a").await,
        step_worker(&db.pool, "orders", "a").await,
        step_worker(&db.pool, "orders", "a").await,
    ];
    assert_eq!(covered().await, [3, 0, 0]);
    let other = worker(&db.pool, "plain").await;
    assert_eq!(covered().await, [3, 0, 1]);
    set_worker(&db.pool, first, "deprecated_at = now()").await;
    assert_eq!(covered().await, [2, 0, 1]);
    set_worker(&db.pool, second, "stopped_at = now()").await;
    assert_eq!(covered().await, [1, 0, 1]);
    let heard = "last_heartbeat_at = clock_timestamp() - interval '5 seconds'";
    set_worker(&db.pool, third, heard).await;
    assert_eq!(covered().await, [1, 0, 1], "a heartbeat is due every 5 s");
    let silent = "last_heartbeat_at = clock_timestamp() - interval '6 seconds'";
    set_worker(&db.pool, third, silent).await;
    set_worker(&db.pool, other, silent).await;
    assert_eq!(covered().await, [0, 0, 0]);
    let rows = coverage(&db.pool).await;
    assert!(rows.iter().all(|row| row["is_covered"] == false));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_last_heartbeat_is_that_of_any_worker_that_the_queue_ever_had() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    let [first, second] = [
        step_worker(&db.pool, "orders", "a").await,
        step_worker(&db.pool, "orders", "a").await,
    ];
    set_worker(
        &db.pool,
        first,
        "last_heartbeat_at = '2001-02-03Z', stopped_at = now()",
    )
    .await;
    set_worker(&db.pool, second, "last_heartbeat_at = '2001-02-02Z'").await;
    let heartbeats: Vec<Option<String>> = sqlx::query_scalar(
        "select to_char(last_heartbeat_at at time zone 'UTC', 'YYYY-MM-DD') from pgflow.coverage",
    )
    .fetch_all(&db.pool)
    .await
    .expect("the view can be read");
    assert_eq!(heartbeats, [Some("2001-02-03".to_owned()), None]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn messages_count_while_they_can_be_read_and_the_oldest_tells_since_when() {
    let db = TestDb::new().await;
    define_with_step_queues(
        &db.pool,
        "orders",
        &[step("a"), step("late").start_delay(600)],
    )
    .await;
    for _ in 0..3 {
        start(&db.pool, "orders", json!({})).await;
    }
    let waiting = async || -> Vec<(Option<i64>, Option<bool>)> {
        sqlx::query_as(
            "select c.waiting_messages,
                c.oldest_waiting_at = (select min(q.vt) from pgmq.q_orders__a q where q.vt <= now())
             from pgflow.coverage c",
        )
        .fetch_all(&db.pool)
        .await
        .expect("the view can be read")
    };
    assert_eq!(waiting().await, [(Some(3), Some(true)), (Some(0), None)]);
    let worker = step_worker(&db.pool, "orders", "a").await;
    // Claimed, the oldest one is hidden.
    let task = claim_one(&db.pool, worker).await;
    assert_eq!(task.message_id, 1);
    assert_eq!(waiting().await, [(Some(2), Some(true)), (Some(0), None)]);
    sqlx::query("update pgmq.q_orders__late set vt = vt - interval '1 hour' where msg_id = 2")
        .execute(&db.pool)
        .await
        .expect("time can pass");
    assert_eq!(
        waiting().await,
        [(Some(2), Some(true)), (Some(1), Some(false))]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_dropped_queue_has_null_for_its_messages() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    define(&db.pool, "plain", &[]).await;
    sqlx::raw_sql("select pgmq.drop_queue('orders__a'); select pgmq.drop_queue('plain')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    let expected = [
        row("orders", Some("a"), 0, None),
        row("orders", Some("b"), 0, Some(0)),
        row("plain", None, 0, None),
    ];
    assert_eq!(coverage(&db.pool).await, expected);
    let unknown: i64 = sqlx::query_scalar(
        "select count(*) from pgflow.coverage where waiting_messages is null and oldest_waiting_at is null",
    )
    .fetch_one(&db.pool)
    .await
    .expect("the view can be read");
    assert_eq!(unknown, 2);
}

#[tokio::test]
async fn a_reader_of_the_view_needs_no_right_on_a_queue() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let mut session = db.pool.begin().await.expect("a session");
    let role = format!("{}_viewer", db.name);
    let rights = format!(
        "create role {role};
         grant usage on schema pgflow to {role};
         grant select on pgflow.coverage to {role};
         grant execute on function pgflow._waiting_messages to {role};
         set local role {role}"
    );
    sqlx::raw_sql(AssertSqlSafe(rights))
        .execute(&mut *session)
        .await
        .expect("a role with few rights");
    let waiting: i64 = sqlx::query_scalar("select waiting_messages from pgflow.coverage")
        .fetch_one(&mut *session)
        .await
        .expect("the view can be read");
    assert_eq!(waiting, 1);
    let refused = sqlx::query("select from pgmq.q_orders")
        .execute(&mut *session)
        .await;
    assert_eq!(raised(refused), "42501: permission denied for schema pgmq");
}
