//! `worker_heartbeats`: the workers of one process say that they live, and hear which of them are
//! to stop.

use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::mark_worker_stopped::stop;
use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::define;
use crate::support::operations::{heartbeats, worker_of};

/// Nobody was heard of for an hour.
async fn silence(pool: &PgPool) {
    sqlx::query("update pgflow.workers set last_heartbeat_at = now() - interval '1 hour'")
        .execute(pool)
        .await
        .expect("time can pass");
}

/// Returns the live workers, by id.
async fn live(pool: &PgPool) -> Vec<Uuid> {
    sqlx::query_scalar("select worker_id from pgflow.live_workers order by worker_id")
        .fetch_all(pool)
        .await
        .expect("the view can be read")
}

#[tokio::test]
async fn each_worker_that_is_named_is_heard_of_and_nobody_else() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let mut workers = Vec::new();
    for _ in 0..50 {
        workers.push(worker_of(&db.pool, "charge", "orders").await);
    }
    silence(&db.pool).await;
    assert_eq!(live(&db.pool).await, [] as [Uuid; 0]);
    let (beating, silent) = workers.split_at(40);
    let answers = heartbeats(&db.pool, beating).await.expect("alive");
    let expected: Vec<_> = beating.iter().map(|id| (*id, false, None)).collect();
    assert_eq!(answers, expected);
    assert_eq!(live(&db.pool).await, beating);
    assert_eq!(silent.len(), 10);
}

#[tokio::test]
async fn a_deprecated_one_hears_why_and_stays_alive() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let [told, told_nothing, kept] = [
        worker_of(&db.pool, "charge", "orders").await,
        worker_of(&db.pool, "notify", "orders").await,
        worker_of(&db.pool, "other", "orders").await,
    ];
    sqlx::raw_sql(
        "select pgflow.deprecate_workers('{charge}', 'new code'); select pgflow.deprecate_workers('{notify}')",
    )
    .execute(&db.pool)
    .await
    .expect("told");
    silence(&db.pool).await;
    assert_eq!(
        heartbeats(&db.pool, &[kept, told_nothing, told])
            .await
            .expect("alive"),
        [
            (told, true, Some("new code".to_owned())),
            (told_nothing, true, None),
            (kept, false, None)
        ]
    );
    assert_eq!(live(&db.pool).await, [told, told_nothing, kept]);
}

#[tokio::test]
async fn one_that_is_unknown_or_has_stopped_returns_no_row_and_keeps_nobody_from_beating() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let [stopped, alive] = [
        worker_of(&db.pool, "charge", "orders").await,
        worker_of(&db.pool, "charge", "orders").await,
    ];
    stop(&db.pool, stopped).await;
    silence(&db.pool).await;
    let unknown = Uuid::now_v7();
    assert_eq!(
        heartbeats(&db.pool, &[unknown, stopped, alive, alive])
            .await
            .expect("an answer"),
        [(alive, false, None)]
    );
    assert_eq!(live(&db.pool).await, [alive]);
    let gone = [unknown, stopped];
    let call = heartbeats(&db.pool, &gone);
    assert_eq!(unchanged(&db.pool, call).await.expect("an answer").len(), 0);
    let call = heartbeats(&db.pool, &[]);
    assert_eq!(unchanged(&db.pool, call).await.expect("an answer").len(), 0);
    let call = sqlx::query("select pgflow.worker_heartbeats(null)").fetch_all(&db.pool);
    let rows = unchanged(&db.pool, call).await.expect("an answer");
    assert_eq!(rows.len(), 0);
}

#[tokio::test]
async fn workers_of_older_releases_hear_the_same_one_by_one() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let worker = worker_of(&db.pool, "charge", "orders").await;
    sqlx::query("select pgflow.fence_worker_functions('{charge}')")
        .execute(&db.pool)
        .await
        .expect("fenced");
    let is_deprecated: bool = sqlx::query_scalar("select pgflow.worker_heartbeat($1)")
        .bind(worker)
        .fetch_one(&db.pool)
        .await
        .expect("alive");
    assert!(is_deprecated);
}
