//! A worker's heartbeat beside its own end: no beat brings a stopped worker back.

use sqlx::postgres::{PgExecutor, PgPool, PgQueryResult};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{define, worker};
use crate::support::rows::raised;
use crate::support::sessions::{until_blocked, without_waiting};

async fn beat(db: impl PgExecutor<'_>, worker: Uuid) -> sqlx::Result<PgQueryResult> {
    let beat = sqlx::query("select pgflow.worker_heartbeat($1)").bind(worker);
    beat.execute(db).await
}

async fn stop(db: impl PgExecutor<'_>, worker: Uuid) {
    let stop = sqlx::query("select pgflow.mark_worker_stopped($1)").bind(worker);
    stop.execute(db).await.expect("a worker can always stop");
}

/// The last heartbeat of the one worker, and whether it has stopped.
async fn beats_and_end(pool: &PgPool) -> (String, bool) {
    sqlx::query_as("select last_heartbeat_at::text, stopped_at is not null from pgflow.workers")
        .fetch_one(pool)
        .await
        .expect("one worker")
}

#[tokio::test]
async fn a_heartbeat_beside_the_end_is_answered_and_the_next_is_refused() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let id = worker(&db.pool, "orders").await;
    let (last_beat, _) = beats_and_end(&db.pool).await;
    let mut stopping = db.pool.begin().await.expect("a first session");
    stop(&mut *stopping, id).await;
    without_waiting(beat(&db.pool, id)).await.expect("alive");
    stopping.commit().await.expect("committed");
    assert_eq!(
        raised(beat(&db.pool, id).await),
        format!("PF007: worker {id} is not registered, or has stopped")
    );
    assert_eq!(beats_and_end(&db.pool).await, (last_beat, true));
}

#[tokio::test]
async fn an_end_that_waited_for_a_heartbeat_is_kept() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let id = worker(&db.pool, "orders").await;
    let (last_beat, _) = beats_and_end(&db.pool).await;
    let mut beating = db.pool.begin().await.expect("a first session");
    beat(&mut *beating, id).await.expect("alive");
    let stopping = until_blocked(&db.pool, move |mut second| async move {
        stop(&mut *second, id).await;
    })
    .await;
    beating.commit().await.expect("committed");
    stopping.await.expect("stopped");
    let (newer_beat, has_stopped) = beats_and_end(&db.pool).await;
    assert_ne!(newer_beat, last_beat);
    assert!(has_stopped);
    assert!(raised(beat(&db.pool, id).await).starts_with("PF007: "));
}
