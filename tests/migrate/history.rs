//! Databases whose record does not fit the code: refused, and left as they are.

use pgflow_migrations::{LATEST_VERSION, Migration};
use pgflow_runtime::migrate::{self, MigrateError, Migrator, RecordedState};

use super::{Blank, TABLES, blank, chain};

/// Fails, and must leave the database as it was.
async fn refused(database: &Blank) -> MigrateError {
    let before = database.dump().await;
    let error = migrate::migrate(&database.pool).await.unwrap_err();
    assert_eq!(database.dump().await, before);
    error
}

#[tokio::test]
async fn a_newer_database_is_named_with_both_versions() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
        .run("insert into pgflow.schema_migrations values (99, 'future', '')")
        .await;
    let error = refused(&database).await;
    assert!(matches!(
        error,
        MigrateError::DatabaseNewer {
            database: 99,
            code: LATEST_VERSION
        }
    ));
    let message = error.to_string();
    assert!(
        message.contains("99") && message.contains(&LATEST_VERSION.to_string()),
        "{message}"
    );
    let status = migrate::status(&database.pool).await.unwrap();
    assert_eq!(status.applied.last().unwrap().state, RecordedState::Unknown);
    assert!(!status.is_current());
}

#[tokio::test]
async fn a_file_edited_after_its_release_is_named() {
    let database = blank().await;
    Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    database
        .run("update pgflow.schema_migrations set digest = 'another' where version = 1")
        .await;
    let error = refused(&database).await;
    assert!(matches!(&error, MigrateError::Edited { version: 1, name } if name == "core"));
    assert!(error.to_string().contains("0001_core"), "{error}");
    let status = migrate::status(&database.pool).await.unwrap();
    assert_eq!(status.applied[0].state, RecordedState::Edited);
}

#[tokio::test]
async fn a_gap_in_the_record_is_named() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
        .run("delete from pgflow.schema_migrations where version = 1")
        .await;
    let error = refused(&database).await;
    assert!(matches!(
        error,
        MigrateError::HistoryGap {
            missing: 1,
            newer: LATEST_VERSION
        }
    ));
}

#[tokio::test]
async fn a_schema_of_somebody_else_is_not_touched_and_pgmq_not_installed() {
    let database = blank().await;
    database
        .run("create schema pgflow; create table pgflow.flows (flow_slug text)")
        .await;
    let error = refused(&database).await;
    assert!(
        matches!(&error, MigrateError::ForeignSchema { found } if found == "relation flows"),
        "{error:?}"
    );
    assert_eq!(database.schemas().await, ["pgflow"]);
    database.run("drop table pgflow.flows; create function pgflow.f() returns int language sql as 'select 1'").await;
    let error = refused(&database).await;
    assert!(error.to_string().contains("function f"), "{error}");
    database.run("drop function pgflow.f()").await;
    migrate::migrate(&database.pool).await.unwrap();
}

#[tokio::test]
async fn a_failing_file_is_named_with_its_line_and_takes_everything_back() {
    const FILES: &[Migration] = &[
        TABLES,
        Migration {
            version: 2,
            name: "bad",
            sql: "create table pgflow.fine (id int);\n\ncreate table pgflow.wrong (id nonsense);",
        },
    ];
    let database = blank().await;
    let error = Migrator::new()
        .with_files(FILES, &[])
        .run(&database.pool)
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        MigrateError::Migration {
            version: 2,
            name: "bad",
            line: Some(3),
            ..
        }
    ));
    let message = chain(&error);
    assert!(
        message.contains("0002_bad failed at line 3") && message.contains("nonsense"),
        "{message}"
    );
    assert!(!database.schemas().await.contains(&"pgflow".to_owned()));
}

#[tokio::test]
async fn a_table_in_use_is_waited_for_but_not_for_ever() {
    const FILES: &[Migration] = &[
        TABLES,
        Migration {
            version: 2,
            name: "column",
            sql: "set local lock_timeout = '50 ms'; alter table pgflow.installation add column id int;",
        },
    ];
    let database = blank().await;
    let migrator = Migrator::new().with_files(FILES, &[]);
    migrator.up_to(1).run(&database.pool).await.unwrap();
    let mut reading = database.pool.begin().await.unwrap();
    sqlx::query("select from pgflow.installation")
        .execute(&mut *reading)
        .await
        .unwrap();
    let error = migrator.run(&database.pool).await.unwrap_err();
    assert!(matches!(error, MigrateError::TableLock { .. }), "{error:?}");
    assert!(error.to_string().contains("0002_column"), "{error}");
    reading.rollback().await.unwrap();
    assert_eq!(migrator.run(&database.pool).await.unwrap().to_version, 2);
}
