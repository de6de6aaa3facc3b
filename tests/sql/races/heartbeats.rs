//! Heartbeats of whole processes beside each other, and beside those who tell workers to stop:
//! every lock of workers is taken in one order.

use std::time::Duration;

use sqlx::postgres::{PgExecutor, PgPool};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{define, shape, step};
use crate::support::operations::{heartbeats, told_to_stop, worker_of};
use crate::support::runs::random;
use crate::support::sessions::{until_blocked, without_waiting};

type Beats = sqlx::Result<Vec<(Uuid, bool, Option<String>)>>;

/// A flow with workers, in the order of their ids.
async fn with_workers<const N: usize>() -> (TestDb, [Uuid; N]) {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut ids = [Uuid::nil(); N];
    for id in &mut ids {
        *id = worker_of(&db.pool, "charge", "orders").await;
    }
    assert!(ids.is_sorted());
    (db, ids)
}

/// Fails unless nobody holds these workers.
async fn assert_free(pool: &PgPool, workers: &[Uuid]) {
    sqlx::query("select from pgflow.workers where worker_id = any ($1) for update nowait")
        .bind(workers)
        .execute(pool)
        .await
        .expect("nobody holds them");
}

async fn stop(db: impl PgExecutor<'_>, worker: Uuid) {
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(worker)
        .execute(db)
        .await
        .expect("stopped");
}

#[tokio::test]
async fn beats_pass_by_a_worker_that_somebody_holds() {
    let (db, [first, second, third]) = with_workers().await;
    sqlx::query("update pgflow.workers set last_heartbeat_at = now() - interval '1 hour'")
        .execute(&db.pool)
        .await
        .expect("not heard of for an hour");
    let mut holding = db.pool.begin().await.expect("a first session");
    stop(&mut *holding, first).await;
    let beats: Beats = without_waiting(heartbeats(&db.pool, &[third, first, second])).await;
    assert_eq!(
        beats.expect("alive"),
        [
            (first, false, None),
            (second, false, None),
            (third, false, None)
        ]
    );
    holding.commit().await.expect("committed");
    assert_eq!(heard_of(&db.pool).await, [second, third]);
    let beats: Beats = heartbeats(&db.pool, &[first]).await;
    assert_eq!(beats.expect("answered"), [], "it has stopped");
}

/// The workers whose last heartbeat is not an hour old.
async fn heard_of(pool: &PgPool) -> Vec<Uuid> {
    sqlx::query_scalar(
        "select worker_id from pgflow.workers
         where last_heartbeat_at > now() - interval '30 minutes' order by 1",
    )
    .fetch_all(pool)
    .await
    .expect("workers can be read")
}

/// Statements that tell all workers of the flow to stop.
const DEPRECATIONS: [&str; 4] = [
    "select pgflow._drain_flow('orders')",
    "select pgflow.delete_flow_and_data('orders')",
    "select pgflow.fence_worker_functions('{charge}')",
    "select pgflow.deprecate_workers('{charge}')",
];

#[tokio::test]
async fn who_tells_workers_to_stop_takes_them_in_the_same_order() {
    for statement in DEPRECATIONS {
        let (db, [first, second, third]) = with_workers().await;
        let mut holding = db.pool.begin().await.expect("a first session");
        heartbeats(&mut *holding, &[first]).await.expect("alive");
        let telling = until_blocked(&db.pool, move |mut session| async move {
            sqlx::query(statement)
                .execute(&mut *session)
                .await
                .map(drop)
        })
        .await;
        assert_free(&db.pool, &[second, third]).await;
        holding.commit().await.expect("committed");
        telling.await.expect("answered").expect(statement);
        let told = told_to_stop(&db.pool, &[first, second, third]).await;
        assert!(told.iter().all(Option::is_some), "{statement}: {told:?}");
    }
}

#[tokio::test]
async fn beats_beside_who_tells_workers_to_stop_hear_why_with_the_next() {
    let whys = [
        Some("the flow is being replaced by another definition"),
        Some("the flow was deleted"),
        Some("fenced"),
        None,
    ];
    for (statement, why) in DEPRECATIONS.into_iter().zip(whys) {
        let (db, [first, second]) = with_workers().await;
        let mut telling = db.pool.begin().await.expect("a first session");
        sqlx::query(statement)
            .execute(&mut *telling)
            .await
            .expect(statement);
        let beats: Beats = without_waiting(heartbeats(&db.pool, &[second, first])).await;
        assert_eq!(
            beats.expect("alive"),
            [(first, false, None), (second, false, None)],
            "{statement}"
        );
        telling.commit().await.expect("committed");
        let beats: Beats = heartbeats(&db.pool, &[second, first]).await;
        let why = why.map(ToOwned::to_owned);
        assert_eq!(
            beats.expect("alive"),
            [(first, true, why.clone()), (second, true, why)],
            "{statement}"
        );
    }
}

/// Two processes that beat for the same twenty workers in ever other orders, while operators tell
/// them to stop.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_and_an_operator_never_lock_each_other_out() {
    let (db, workers) = with_workers::<20>().await;
    let mut sessions = JoinSet::new();
    for process in ["one", "two", "three"] {
        let pool = db.pool.clone();
        sessions.spawn(async move {
            let mut random = random(process);
            let mut ids = workers;
            for _ in 0..100 {
                random.shuffle(&mut ids);
                let beats = heartbeats(&pool, &ids).await?;
                assert_eq!(beats.len(), 20);
            }
            Ok(())
        });
    }
    for statement in [
        "select pgflow._drain_flow('orders')",
        "select pgflow.deprecate_workers('{charge}', 'again')",
        "select pgflow.fence_worker_functions('{charge}'), pgflow.unfence_worker_functions('{charge}')",
    ] {
        let pool = db.pool.clone();
        sessions.spawn(async move {
            for _ in 0..50 {
                sqlx::query(statement).execute(&pool).await?;
                sqlx::query("update pgflow.workers set deprecated_at = null where worker_id = (select worker_id from pgflow.workers order by 1 desc limit 1)")
                    .execute(&pool)
                    .await?;
            }
            Ok(())
        });
    }
    let ended = tokio::time::timeout(Duration::from_mins(1), sessions.join_all()).await;
    let ended: Vec<sqlx::Result<()>> = ended.expect("nobody waits without end");
    for result in ended {
        result.expect("no deadlock");
    }
}

#[tokio::test]
async fn a_compilation_that_drains_waits_for_beats_and_counts_their_workers() {
    let (db, [first, second]) = with_workers().await;
    sqlx::raw_sql(
        "select pgflow.set_environment('local'); update pgflow.workers set last_heartbeat_at = now() - interval '1 hour'",
    )
    .execute(&db.pool)
    .await
    .expect("a developer's own");
    let mut beating = db.pool.begin().await.expect("a first session");
    let beats = heartbeats(&mut *beating, &[first, second]).await;
    assert_eq!(beats.expect("alive").len(), 2);
    let compiling = until_blocked(&db.pool, |mut session| async move {
        sqlx::query_scalar::<_, String>(
            "select pgflow.ensure_flow_compiled('orders', $1) ->> 'status'",
        )
        .bind(shape(&[step("b")]))
        .fetch_one(&mut *session)
        .await
    })
    .await;
    beating.commit().await.expect("committed");
    let status = compiling.await.expect("answered").expect("answered");
    assert_eq!(status, "draining");
}
