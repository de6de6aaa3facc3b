//! Removal of flows.

use pgflow::maintenance::{delete_flow, delete_flow_in_batches, flow_contents};
use pgflow::{CallError, RefusalCode};
use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgPool};

use crate::support::TestDb;
use crate::support::flows::{
    claim_one, define, define_with_step_queues, drain, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::count;
use crate::support::runs::fail_for_good;

/// Flow `Orders` with runs of every status and three workers, one of which lives; and flow `other`.
async fn two_flows() -> TestDb {
    let db = TestDb::new().await;
    define(&db.pool, "other", &[step("a")]).await;
    start(&db.pool, "other", json!({})).await;
    worker(&db.pool, "other").await;
    define(&db.pool, "Orders", &[step("a")]).await;
    let silent = worker(&db.pool, "Orders").await;
    let stopped = worker(&db.pool, "Orders").await;
    sqlx::query(
        "update pgflow.workers set last_heartbeat_at = now() - interval '7 seconds', \
            stopped_at = case when worker_id = $2 then now() end \
         where worker_id in ($1, $2)",
    )
    .bind(silent)
    .bind(stopped)
    .execute(&db.pool)
    .await
    .expect("rows can be aged");
    let live = worker(&db.pool, "Orders").await;
    start(&db.pool, "Orders", json!({})).await;
    drain(&db.pool, live, |_| json!(1)).await;
    start(&db.pool, "Orders", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, live).await, "no").await;
    for _ in 0..2 {
        start(&db.pool, "Orders", json!({})).await;
    }
    // Alive however long the rest takes.
    sqlx::query("update pgflow.workers set last_heartbeat_at = now() + interval '1 minute' where worker_id = $1")
        .bind(live)
        .execute(&db.pool)
        .await
        .expect("rows can be changed");
    db
}

#[tokio::test]
async fn what_goes_is_read_before_and_goes() {
    let db = two_flows().await;
    let mut session = db.pool.acquire().await.expect("a session");
    let contents = flow_contents(&mut session, "Orders").await.expect("read");
    assert_eq!(contents.flow_slug, "Orders");
    let runs = contents.runs;
    assert_eq!([runs.started, runs.completed, runs.failed], [2, 1, 1]);
    assert_eq!(contents.queues, ["orders"]);
    assert_eq!(contents.live_workers, 1);

    let removed = delete_flow(&db.pool, "Orders").await.expect("deleted");
    assert_eq!(removed, 4);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    assert_eq!(count(&db.pool, "pgflow.flows").await, 1);
    assert_eq!(count(&db.pool, "pgmq.meta").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_that_is_deleted_in_batches_is_gone_like_any_other() {
    let db = two_flows().await;
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    sqlx::query("set default_transaction_isolation = 'serializable'")
        .execute(&mut session)
        .await
        .expect("a role's own default");
    let removed = delete_flow_in_batches(&mut session, "Orders").await;
    assert_eq!(removed.expect("deleted"), 4);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    assert_eq!(queue_names(&db.pool).await, ["other"]);
    let unknown = delete_flow_in_batches(&mut session, "orders").await;
    let Err(CallError::Refused(refusal)) = unknown else {
        panic!("not refused: {unknown:?}");
    };
    assert_eq!(refusal.code(), RefusalCode::UnknownFlow);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_queues_that_are_named_are_those_that_go() {
    let db = two_flows().await;
    define_with_step_queues(&db.pool, "steps", &[step("a"), step("b").deps(&["a"])]).await;
    define(&db.pool, "idle", &[]).await;
    define(&db.pool, "guest", &[step("a")]).await;
    // Named like a flow, and somebody else's. And one that a flow without steps has, and a step of
    // another one besides.
    sqlx::raw_sql(
        "select pgmq.create('steps'), pgmq.create('orders_too');
         update pgflow.steps set queue_name = 'idle' where flow_slug = 'guest'",
    )
    .execute(&db.pool)
    .await
    .expect("queues of somebody else");
    let mut session = db.pool.acquire().await.expect("a session");
    for (slug, queues) in [
        ("steps", 2),
        ("Orders", 1),
        ("other", 1),
        ("guest", 1),
        ("idle", 1),
    ] {
        let mut expected = queue_names(&db.pool).await;
        let contents = flow_contents(&mut session, slug).await.expect("read");
        assert_eq!(contents.queues.len(), queues, "{contents:?}");
        expected.retain(|name| !contents.queues.contains(name));
        delete_flow(&mut *session, slug).await.expect("deleted");
        assert_eq!(queue_names(&db.pool).await, expected);
    }
    assert_eq!(queue_names(&db.pool).await, ["orders_too", "steps"]);
    assert_invariants(&db.pool).await;
}

async fn queue_names(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select queue_name::text from pgmq.meta order by 1")
        .fetch_all(pool)
        .await
        .expect("queues can be read")
}

#[tokio::test]
async fn reading_what_goes_changes_nothing() {
    let db = two_flows().await;
    let mut session = db.pool.acquire().await.expect("a session");
    for slug in ["Orders", "orders", "nothing"] {
        let _ = flow_contents(&mut session, slug).await;
    }
    assert_eq!(count(&db.pool, "pgflow.runs").await, 5);
    assert_eq!(count(&db.pool, "pgflow.flows").await, 2);
    let told = "select count(*) from pgflow.workers where deprecated_at is not null";
    let told: i64 = sqlx::query_scalar(told)
        .fetch_one(&db.pool)
        .await
        .expect("counted");
    assert_eq!(told, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_similar_slug_is_refused_and_named() {
    let db = two_flows().await;
    let mut session = db.pool.acquire().await.expect("a session");
    let read = flow_contents(&mut session, "ORDERS").await.map(drop);
    let deleted = delete_flow(&mut *session, "ORDERS").await.map(drop);
    for refused in [read, deleted] {
        let Err(CallError::Refused(refusal)) = refused else {
            panic!("not refused: {refused:?}");
        };
        assert_eq!(refusal.code(), RefusalCode::UnknownFlow);
        assert!(
            refusal
                .hint()
                .is_some_and(|hint| hint.contains("\"Orders\"")),
            "{refusal}"
        );
    }
    // The session can be used on.
    flow_contents(&mut session, "Orders").await.expect("read");
    assert_invariants(&db.pool).await;
}
