//! `disable_worker_function`: nothing starts the function again; what runs continues.

use serde_json::{Value, json};
use sqlx::postgres::{PgExecutor, PgPool};

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{claim, define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{
    function, heartbeats, standing, told_to_stop, track, try_register, worker_of,
};
use crate::support::rows::raised;

/// Disables a function; returns the row that the call returned.
async fn disable(
    db: impl PgExecutor<'_>,
    name: Option<&str>,
    reason: Option<&str>,
) -> sqlx::Result<Value> {
    sqlx::query_scalar("select to_jsonb(pgflow.disable_worker_function($1, $2))")
        .bind(name)
        .bind(reason)
        .fetch_one(db)
        .await
}

async fn row(pool: &PgPool, name: &str) -> Value {
    sqlx::query_scalar(
        "select to_jsonb(w) from pgflow.worker_functions w where w.function_name = $1",
    )
    .bind(name)
    .fetch_one(pool)
    .await
    .expect("the function is known")
}

#[tokio::test]
async fn its_workers_go_on_and_no_other_starts() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker_of(&db.pool, "charge", "orders").await;
    track(&db.pool, "other").await;
    let disabled = disable(&db.pool, Some("charge"), Some("the bank is closed")).await;
    let disabled = disabled.expect("disabled");
    assert_eq!(disabled, row(&db.pool, "charge").await);
    assert_eq!(disabled["enabled"], json!(false));
    assert_ne!(disabled["disabled_at"], Value::Null);
    assert_eq!(
        standing(&db.pool, "charge").await,
        "disabled: the bank is closed"
    );
    assert_eq!(standing(&db.pool, "other").await, "enabled");

    let refused = raised(try_register(&db.pool, "charge", "orders").await);
    assert!(refused.ends_with(": the bank is closed"), "{refused}");
    start(&db.pool, "orders", json!({})).await;
    assert_eq!(claim(&db.pool, worker, 1).await.len(), 1);
    assert_eq!(
        heartbeats(&db.pool, &[worker]).await.expect("alive"),
        [(worker, false, None)]
    );
    assert_eq!(told_to_stop(&db.pool, &[worker]).await, [None]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_first_time_and_reason_are_kept() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    let first = disable(&db.pool, Some("a"), Some("first")).await;
    let call = disable(&db.pool, Some("a"), Some("second"));
    let second = unchanged(&db.pool, call).await;
    assert_eq!(second.expect("disabled"), first.expect("disabled"));
}

#[tokio::test]
async fn a_reason_may_be_left_out() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    sqlx::query("select pgflow.disable_worker_function('a')")
        .execute(&db.pool)
        .await
        .expect("disabled");
    let row = function(&db.pool, "a").await;
    assert_eq!(row["disabled_reason"], Value::Null);
    assert_eq!(standing(&db.pool, "a").await, "disabled: -");
}

#[tokio::test]
async fn an_unknown_function_is_an_error() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    for (name, expected) in [
        (Some("b"), "PF001: worker function \"b\" is not known"),
        (None, "PF009: no worker function was named"),
    ] {
        let call = disable(&db.pool, name, Some("why"));
        assert_eq!(raised(unchanged(&db.pool, call).await), expected);
    }
}
