//! One migrator at a time, and none forever.

use std::time::Duration;

use pgflow_runtime::migrate::{self, MigrateError, Migrator};
use sqlx::{Connection, PgConnection};

use super::blank;

const KEY: &str = "select pg_advisory_lock(x'7067666c6f77'::bigint)";

#[tokio::test]
async fn a_migrator_that_waits_in_vain_says_who_holds_the_lock() {
    let database = blank().await;
    let options = database.options.clone().application_name("somebody else");
    let mut other = PgConnection::connect_with(&options).await.unwrap();
    sqlx::query(KEY).execute(&mut other).await.unwrap();

    let refused = Migrator::new()
        .lock_wait(Duration::from_millis(100))
        .run(&database.pool)
        .await
        .unwrap_err();
    assert!(
        matches!(refused, MigrateError::MigrationLock { .. }),
        "{refused:?}"
    );
    let message = refused.to_string();
    assert!(
        message.contains("after 0.1 s") && message.contains("somebody else"),
        "{message}"
    );

    // Its end, however it ends, lets the next one continue.
    let waiting = tokio::spawn({
        let pool = database.pool.clone();
        async move { migrate::migrate(&pool).await }
    });
    database.wait_for_a_waiting_migrator().await;
    drop(other);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_abandoned_migration_leaves_nothing_and_no_lock() {
    let database = blank().await;
    Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    let before = database.dump().await;
    let mut other = PgConnection::connect_with(&database.options).await.unwrap();
    let mut reading = other.begin().await.unwrap();
    sqlx::query("lock table pgflow.installation in share mode")
        .execute(&mut *reading)
        .await
        .unwrap();

    let migrating = tokio::spawn({
        let pool = database.pool.clone();
        async move { migrate::migrate(&pool).await }
    });
    database.wait_for_a_waiting_migrator().await;
    migrating.abort();
    reading.rollback().await.unwrap();
    assert!(migrating.await.unwrap_err().is_cancelled());
    database.wait_until_no_migrator_is_left().await;
    assert_eq!(database.dump().await, before);
    migrate::migrate(&database.pool).await.unwrap();
}
