//! Two sessions that get in each other's way, at points that the test chooses.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{PgTransaction, Postgres, pool::PoolConnection};
use tokio::task::JoinHandle;

use super::eventually;

/// The longest time for a session to block or to end before the test fails.
const DEADLINE: Duration = Duration::from_secs(20);

/// Runs `work` on a connection of its own; returns once Postgres shows that it waits for a lock.
pub(crate) async fn until_blocked<T, F>(
    pool: &PgPool,
    work: impl FnOnce(PoolConnection<Postgres>) -> F,
) -> JoinHandle<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut connection = pool.acquire().await.expect("a second session");
    let pid = backend_pid(&mut connection).await;
    let running = tokio::spawn(work(connection));
    eventually(
        DEADLINE,
        "the second session waits for a lock",
        async || {
            assert!(
                !running.is_finished(),
                "the second session ended, but was to wait for a lock of the first"
            );
            waits_for_a_lock(pool, pid).await.then_some(())
        },
    )
    .await;
    running
}

async fn waits_for_a_lock(pool: &PgPool, pid: i32) -> bool {
    sqlx::query_scalar(
        "select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')",
    )
    .bind(pid)
    .fetch_one(pool)
    .await
    .expect("activity can be read")
}

/// Runs what must not wait for a lock that another session holds; fails the test when it does.
pub(crate) async fn without_waiting<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work)
        .await
        .expect("it waits for the other session, and was not to")
}

/// Takes the row locks that a query with `for update` names, in a transaction that keeps them.
pub(crate) async fn holding(pool: &PgPool, query: &'static str) -> PgTransaction<'static> {
    let mut transaction = pool.begin().await.expect("a first session");
    let locked = sqlx::query(query)
        .fetch_all(&mut *transaction)
        .await
        .expect("the rows can be locked");
    assert!(!locked.is_empty(), "nothing to lock: {query}");
    transaction
}

async fn backend_pid(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(connection)
        .await
        .expect("a session knows its process id")
}
