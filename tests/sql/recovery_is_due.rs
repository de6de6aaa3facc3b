//! `recovery_is_due`: idle workers ask it, and recover only when it says so.

use serde_json::json;
use sqlx::postgres::PgPool;

use crate::support::flows::{claim_one, start, step};
use crate::support::runs::{database_with, until_recovery_looks};

async fn is_due(pool: &PgPool) -> bool {
    sqlx::query_scalar("select pgflow.recovery_is_due()")
        .fetch_one(pool)
        .await
        .expect("it answers")
}

#[tokio::test]
async fn a_claim_whose_look_is_due_and_a_worker_that_fell_silent_are_reasons() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    assert!(!is_due(&db.pool).await);
    claim_one(&db.pool, worker).await;
    assert!(!is_due(&db.pool).await, "it is looked at in 30 seconds");
    until_recovery_looks(&db.pool).await;
    assert!(is_due(&db.pool).await);
    sqlx::query("update pgflow.claims set look_at = now() + interval '1 hour'")
        .execute(&db.pool)
        .await
        .expect("claims can be changed");
    assert!(!is_due(&db.pool).await);
    for (change, expected) in [
        ("last_heartbeat_at = now() - interval '31 seconds'", true),
        ("lost_at = now()", false),
        ("lost_at = null, stopped_at = now()", false),
    ] {
        let change = format!("update pgflow.workers set {change}");
        sqlx::query(sqlx::AssertSqlSafe(change.clone()))
            .execute(&db.pool)
            .await
            .expect("workers can be changed");
        assert_eq!(is_due(&db.pool).await, expected, "{change}");
    }
}
