//! `mark_worker_stopped`: the end of a worker, once.

use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{define, worker};

pub(super) async fn stop(pool: &PgPool, worker: Uuid) {
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(worker)
        .execute(pool)
        .await
        .expect("a worker can always stop");
}

#[tokio::test]
async fn a_stopped_worker_is_stamped_once_and_nobody_else_is() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[]).await;
    let stopping = worker(&db.pool, "Orders").await;
    worker(&db.pool, "Orders").await;
    let stopped = "select array_agg(worker_id), min(stopped_at::text) from pgflow.workers where stopped_at is not null";
    stop(&db.pool, stopping).await;
    let first: (Vec<Uuid>, String) = sqlx::query_as(stopped)
        .fetch_one(&db.pool)
        .await
        .expect("one");
    assert_eq!(first.0, [stopping]);
    stop(&db.pool, stopping).await;
    stop(&db.pool, Uuid::now_v7()).await;
    let second: (Vec<Uuid>, String) = sqlx::query_as(stopped)
        .fetch_one(&db.pool)
        .await
        .expect("one");
    assert_eq!(second, first);
}
