//! `enable_worker_function`: a function that was disabled may start again.

use super::track_worker_function::{disable, function, track};
use crate::support::TestDb;
use crate::support::rows::raised;

#[tokio::test]
async fn a_disabled_function_is_enabled_by_name() {
    let db = TestDb::new().await;
    track(&db.pool, Some("process")).await.expect("tracked");
    disable(&db.pool).await;
    for _ in 0..2 {
        sqlx::query("select pgflow.enable_worker_function('f')")
            .execute(&db.pool)
            .await
            .expect("enabled, or enabled already");
        assert_eq!(function(&db.pool).await, ("process".to_owned(), true));
    }
    let unknown = sqlx::query("select pgflow.enable_worker_function('g')")
        .execute(&db.pool)
        .await;
    assert_eq!(raised(unknown), "PF001: worker function \"g\" is not known");
}
