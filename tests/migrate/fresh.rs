use std::time::Duration;

use pgflow_migrations::{FUNCTIONS, LATEST_VERSION, MIGRATIONS, PROTOCOL_VERSION};
use pgflow_runtime::migrate::{self, Migrator, PgmqState};
use sqlx::postgres::PgPoolOptions;

use super::blank;

#[tokio::test]
async fn a_blank_database_gets_everything_and_the_second_time_nothing() {
    let database = blank().await;
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(
        (report.from_version, report.to_version),
        (0, LATEST_VERSION)
    );
    assert_eq!(report.migrations.len(), MIGRATIONS.len());
    assert_eq!(report.functions.len(), FUNCTIONS.len());
    assert!(report.installed_pgmq);
    assert!(matches!(
        report.pgmq,
        PgmqState::Sql { version: Some(_) } | PgmqState::Extension { .. }
    ));

    let (dump, applied_at) = (database.dump().await, database.applied_at().await);
    let again = migrate::migrate(&database.pool).await.unwrap();
    assert!(again.is_unchanged(), "{again:?}");
    assert_eq!(
        again.to_string(),
        format!("up to date at migration {LATEST_VERSION}")
    );
    assert_eq!(database.dump().await, dump);
    assert_eq!(database.applied_at().await, applied_at);
    let protocol = database
        .count("select protocol_version::bigint from pgflow.installation")
        .await;
    assert_eq!(protocol, i64::from(PROTOCOL_VERSION));
}

#[tokio::test]
async fn twenty_at_once_apply_it_once() {
    let database = blank().await;
    let calls = (0..20).map(|_| {
        let pool = database.pool.clone();
        tokio::spawn(async move { migrate::migrate(&pool).await })
    });
    let mut applied = 0;
    for call in calls.collect::<Vec<_>>() {
        let report = call.await.unwrap().unwrap();
        applied += usize::from(!report.is_unchanged());
        assert_eq!(report.to_version, LATEST_VERSION);
    }
    assert_eq!(applied, 1);
}

#[tokio::test]
async fn a_pool_of_one_connection_that_is_in_use_is_enough() {
    let database = blank().await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_with(database.options.clone())
        .await
        .unwrap();
    let in_use = pool.acquire().await.unwrap();
    let migrated = tokio::time::timeout(Duration::from_mins(1), migrate::migrate(&pool)).await;
    assert!(!migrated.expect("no deadlock").unwrap().is_unchanged());
    drop(in_use);
}

#[tokio::test]
async fn defaults_of_the_role_that_suit_queries_only_do_not_matter() {
    let database = blank().await;
    // PGMQ's installer has a connection of its own, which such defaults do reach.
    Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    for setting in [
        "default_transaction_isolation = serializable",
        "search_path = nowhere",
        "quote_all_identifiers = on",
        "default_transaction_read_only = on",
    ] {
        database
            .run(format!("alter database {} set {setting}", database.name))
            .await;
    }
    migrate::migrate(&database.pool).await.unwrap();
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .is_unchanged()
    );
    assert!(migrate::status(&database.pool).await.unwrap().is_current());
}

/// The migrator creates functions without looking into them, so that their order does not matter.
#[tokio::test]
async fn every_function_passes_the_checks_of_its_language() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    for function in FUNCTIONS {
        database
            .run(format!("set check_function_bodies = on; {}", function.sql))
            .await;
    }
}

#[tokio::test]
async fn status_tells_what_migrate_would_do_and_has_done() {
    let database = blank().await;
    let before = migrate::status(&database.pool).await.unwrap();
    assert_eq!(before.pgmq, PgmqState::Absent);
    assert_eq!(before.pending.len(), MIGRATIONS.len());
    assert_eq!(before.changed_functions.len(), FUNCTIONS.len());
    assert!(before.applied.is_empty() && before.installation.is_none() && !before.is_current());
    assert!(!before.server_version.is_empty());

    migrate::migrate(&database.pool).await.unwrap();
    let after = migrate::status(&database.pool).await.unwrap();
    assert!(after.is_current(), "{after:?}");
    assert_eq!(after.applied.len(), MIGRATIONS.len());
    let installation = after.installation.unwrap();
    assert_eq!(installation.environment, "production");
    assert_eq!(installation.protocol_version, PROTOCOL_VERSION);
}
