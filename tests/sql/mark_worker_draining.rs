//! `mark_worker_draining`: a worker that was asked to stop, and still runs something.

use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::mark_worker_stopped::stop;
use crate::support::TestDb;
use crate::support::flows::{define, worker};

async fn drain(pool: &PgPool, worker: Uuid) {
    sqlx::query("select pgflow.mark_worker_draining($1)")
        .bind(worker)
        .execute(pool)
        .await
        .expect("a worker can always say so");
}

async fn states(pool: &PgPool) -> Vec<(Uuid, String, Option<String>)> {
    sqlx::query_as(
        "select worker_id, state, deprecated_reason from pgflow.worker_status order by started_at",
    )
    .fetch_all(pool)
    .await
    .expect("the view can be read")
}

async fn live_workers(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select live_workers from pgflow.coverage")
        .fetch_one(pool)
        .await
        .expect("one flow")
}

#[tokio::test]
async fn it_is_draining_and_serves_nobody_any_more() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[]).await;
    let draining = worker(&db.pool, "Orders").await;
    let running = worker(&db.pool, "Orders").await;
    drain(&db.pool, draining).await;
    let reason = Some("its process was asked to stop".to_owned());
    assert_eq!(
        states(&db.pool).await,
        [
            (draining, "draining".to_owned(), reason.clone()),
            (running, "running".to_owned(), None)
        ]
    );
    assert_eq!(live_workers(&db.pool).await, 1);

    stop(&db.pool, draining).await;
    drain(&db.pool, Uuid::now_v7()).await;
    assert_eq!(
        states(&db.pool).await[0],
        (draining, "stopped".to_owned(), reason)
    );
}

#[tokio::test]
async fn who_was_told_before_or_has_stopped_stays_as_it_is() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[]).await;
    let told = worker(&db.pool, "Orders").await;
    let stopped = worker(&db.pool, "Orders").await;
    sqlx::query("update pgflow.workers set deprecated_at = now(), deprecated_reason = 'release 42' where worker_id = $1")
        .bind(told)
        .execute(&db.pool)
        .await
        .expect("told");
    stop(&db.pool, stopped).await;
    let before = states(&db.pool).await;
    drain(&db.pool, told).await;
    drain(&db.pool, stopped).await;
    assert_eq!(states(&db.pool).await, before);
}
