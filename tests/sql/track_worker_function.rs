//! `track_worker_function`: what is known of a function before any of its workers runs.

use sqlx::postgres::{PgPool, PgQueryResult};

use crate::support::TestDb;
use crate::support::rows::{count, raised};

/// Tracks function `f`.
pub(super) async fn track(pool: &PgPool, mode: Option<&str>) -> sqlx::Result<PgQueryResult> {
    sqlx::query("select pgflow.track_worker_function(function_name => 'f', start_mode => $1)")
        .bind(mode)
        .execute(pool)
        .await
}

/// The start mode of function `f`, and whether it is enabled.
pub(super) async fn function(pool: &PgPool) -> (String, bool) {
    sqlx::query_as(
        "select start_mode, enabled from pgflow.worker_functions where function_name = 'f'",
    )
    .fetch_one(pool)
    .await
    .expect("the function is tracked")
}

/// Disables every function, as an operator does manually.
pub(super) async fn disable(pool: &PgPool) {
    sqlx::query("update pgflow.worker_functions set enabled = false, disabled_at = now(), disabled_reason = 'fenced'")
        .execute(pool)
        .await
        .expect("disabled");
}

#[tokio::test]
async fn a_function_is_tracked_once_and_its_start_mode_is_the_latest() {
    let db = TestDb::new().await;
    sqlx::query("select pgflow.track_worker_function('f')")
        .execute(&db.pool)
        .await
        .expect("tracked");
    assert_eq!(function(&db.pool).await, ("process".to_owned(), true));
    track(&db.pool, Some("http")).await.expect("tracked");
    assert_eq!(function(&db.pool).await, ("http".to_owned(), true));
    assert_eq!(count(&db.pool, "pgflow.worker_functions").await, 1);
}

#[tokio::test]
async fn a_disabled_function_stays_disabled_when_it_is_tracked_again() {
    let db = TestDb::new().await;
    track(&db.pool, Some("process")).await.expect("tracked");
    disable(&db.pool).await;
    track(&db.pool, Some("process")).await.expect("tracked");
    assert_eq!(function(&db.pool).await, ("process".to_owned(), false));
}

#[tokio::test]
async fn a_start_mode_is_process_or_http() {
    let db = TestDb::new().await;
    assert_eq!(
        raised(track(&db.pool, Some("cron")).await),
        "PF009: start mode \"cron\" of function \"f\" is unknown; it is \"process\" or \"http\""
    );
    assert_eq!(
        raised(track(&db.pool, None).await),
        "PF009: start mode \"<NULL>\" of function \"f\" is unknown; it is \"process\" or \"http\""
    );
    assert_eq!(count(&db.pool, "pgflow.worker_functions").await, 0);
}
