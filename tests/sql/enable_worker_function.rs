//! `enable_worker_function`: a function that was disabled may start again; a fence ends with what
//! it has recorded.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::define;
use crate::support::operations::{disable, fence, standing, track, try_register};
use crate::support::rows::raised;

/// Enables a function; returns the row that the call returned.
async fn enable(pool: &PgPool, name: Option<&str>) -> sqlx::Result<Value> {
    sqlx::query_scalar("select to_jsonb(pgflow.enable_worker_function($1))")
        .bind(name)
        .fetch_one(pool)
        .await
}

#[tokio::test]
async fn a_disabled_function_is_enabled_by_name() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    track(&db.pool, "a").await;
    track(&db.pool, "b").await;
    disable(&db.pool, "a", Some("broken")).await;
    disable(&db.pool, "b", Some("broken")).await;
    let enabled = enable(&db.pool, Some("a")).await.expect("enabled");
    assert_eq!(enabled["enabled"], json!(true));
    assert_eq!(enabled["disabled_at"], Value::Null);
    assert_eq!(enabled["disabled_reason"], Value::Null);
    let registered = try_register(&db.pool, "a", "orders").await;
    registered.expect("it may start again");
    assert_eq!(standing(&db.pool, "b").await, "disabled: broken");

    let again = unchanged(&db.pool, enable(&db.pool, Some("a"))).await;
    assert_eq!(again.expect("enabled already"), enabled);
}

#[tokio::test]
async fn of_a_fenced_function_only_the_fence_ends() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    track(&db.pool, "b").await;
    disable(&db.pool, "b", Some("broken")).await;
    fence(&db.pool, &["a", "b"], None).await.expect("fenced");
    let enabled = enable(&db.pool, Some("a")).await.expect("unfenced");
    assert_eq!(enabled["enabled"], json!(true));
    assert_eq!(enabled["fenced_at"], Value::Null);
    assert_eq!(standing(&db.pool, "a").await, "enabled");
    assert_eq!(
        standing(&db.pool, "b").await,
        "fenced (then disabled: broken)"
    );

    let restored = enable(&db.pool, Some("b")).await.expect("unfenced");
    assert_eq!(restored["enabled"], json!(false));
    assert_eq!(restored["fenced_at"], Value::Null);
    assert_eq!(standing(&db.pool, "b").await, "disabled: broken");
    // Its own reason is dealt with by another call.
    enable(&db.pool, Some("b")).await.expect("enabled");
    assert_eq!(standing(&db.pool, "b").await, "enabled");
}

#[tokio::test]
async fn an_unknown_function_is_an_error() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    for (name, expected) in [
        (Some("b"), "PF001: worker function \"b\" is not known"),
        (None, "PF009: no worker function was named"),
    ] {
        let call = enable(&db.pool, name);
        assert_eq!(raised(unchanged(&db.pool, call).await), expected);
    }
}
