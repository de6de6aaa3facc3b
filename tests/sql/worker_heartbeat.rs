//! `worker_heartbeat`: a worker says that it is alive, and hears whether it is to stop.

use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::mark_worker_stopped::stop;
use crate::support::TestDb;
use crate::support::flows::{define, worker};
use crate::support::rows::raised;

async fn heartbeat(pool: &PgPool, worker: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar("select pgflow.worker_heartbeat($1)")
        .bind(worker)
        .fetch_one(pool)
        .await
}

#[tokio::test]
async fn a_heartbeat_is_stored_and_answers_whether_the_worker_is_deprecated() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[]).await;
    let (beating, silent) = (
        worker(&db.pool, "Orders").await,
        worker(&db.pool, "Orders").await,
    );
    sqlx::query("update pgflow.workers set last_heartbeat_at = '2000-01-01'")
        .execute(&db.pool)
        .await
        .expect("time can be set back");
    assert!(!heartbeat(&db.pool, beating).await.expect("alive"));
    let recent: Vec<Uuid> = sqlx::query_scalar(
        "select worker_id from pgflow.workers where last_heartbeat_at > started_at",
    )
    .fetch_all(&db.pool)
    .await
    .expect("workers can be read");
    assert_eq!(recent, [beating]);
    sqlx::query("update pgflow.workers set deprecated_at = now() where worker_id = $1")
        .bind(silent)
        .execute(&db.pool)
        .await
        .expect("deprecated");
    assert!(heartbeat(&db.pool, silent).await.expect("alive"));
}

#[tokio::test]
async fn a_worker_that_is_stopped_or_unknown_is_told_so() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[]).await;
    let (stopped, running) = (
        worker(&db.pool, "Orders").await,
        worker(&db.pool, "Orders").await,
    );
    stop(&db.pool, stopped).await;
    for gone in [stopped, Uuid::now_v7()] {
        assert_eq!(
            raised(heartbeat(&db.pool, gone).await),
            format!("PF007: worker {gone} is not registered, or has stopped")
        );
    }
    assert!(!heartbeat(&db.pool, running).await.expect("alive"));
}
