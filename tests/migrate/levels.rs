//! Databases of older releases, blank and in use.

use pgflow_migrations::{FUNCTIONS, LATEST_VERSION};
use pgflow_runtime::migrate::{self, MigrateError, Migrator};

use super::{Blank, blank, chain};
use crate::upgrade::POPULATED_AT_LEVEL_1 as POPULATED;

#[tokio::test]
async fn from_every_older_level_the_result_is_that_of_a_fresh_database() {
    let fresh = blank().await;
    migrate::migrate(&fresh.pool).await.unwrap();
    let expected = fresh.dump().await;
    for level in 1..LATEST_VERSION {
        let database = blank().await;
        let older = Migrator::new()
            .up_to(level)
            .run(&database.pool)
            .await
            .unwrap();
        assert_eq!((older.to_version, older.functions.len()), (level, 0));
        let report = migrate::migrate(&database.pool).await.unwrap();
        assert_eq!(
            (report.from_version, report.to_version),
            (level, LATEST_VERSION)
        );
        assert_eq!(report.functions.len(), FUNCTIONS.len());
        assert_eq!(database.dump().await, expected, "from level {level}");
    }
}

#[tokio::test]
async fn an_older_level_is_not_gone_back_to() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    let report = Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    assert!(report.is_unchanged());
    assert_eq!(report.to_version, LATEST_VERSION);
}

/// A database in use at level 1.
async fn populated() -> Blank {
    let database = blank().await;
    Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    database.run(POPULATED).await;
    database
}

async fn tasks(database: &Blank) -> String {
    database
        .text(
            "select string_agg(format('%s %s %s %s %s', run_id, step_slug, task_index, status, queue_name), E'\n'
                 order by run_id, step_slug, task_index) from pgflow.step_tasks",
        )
        .await
}

#[tokio::test]
async fn a_database_in_use_is_upgraded_by_migrate_and_by_the_script_alike() {
    let (by_migrate, by_script) = (populated().await, populated().await);
    migrate::migrate(&by_migrate.pool).await.unwrap();
    by_script.run(migrate::script()).await;
    assert_eq!(by_script.dump().await, by_migrate.dump().await);
    assert_eq!(tasks(&by_script).await, tasks(&by_migrate).await);
    assert!(!tasks(&by_migrate).await.is_empty());
}

#[tokio::test]
async fn an_upgrade_that_a_file_refuses_changes_nothing_and_says_why() {
    let database = populated().await;
    database
        .run("insert into pgflow.flows (flow_slug) values (repeat('too_long_', 6))")
        .await;
    let before = database.dump().await;
    let error = migrate::migrate(&database.pool).await.unwrap_err();
    assert!(matches!(error, MigrateError::Migration { version: 2, .. }));
    let message = chain(&error);
    assert!(message.contains("too_long_too_long_"), "{message}");
    assert_eq!(database.dump().await, before);

    let message = database.error_of(migrate::script()).await;
    assert!(message.contains("too_long_too_long_"), "{message}");
    assert_eq!(database.dump().await, before);
}
