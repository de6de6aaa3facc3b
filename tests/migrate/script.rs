//! The script does what `migrate` does.

use pgflow_migrations::{Function, Migration};
use pgflow_runtime::migrate::{self, Migrator};

use super::{Blank, TABLES, blank};

/// A database with PGMQ and nothing else.
async fn with_pgmq() -> Blank {
    let database = blank().await;
    Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    database.run("drop schema pgflow cascade").await;
    database
}

#[tokio::test]
async fn the_script_gives_what_migrate_gives_and_may_be_applied_again() {
    let migrated = blank().await;
    migrate::migrate(&migrated.pool).await.unwrap();
    let expected = migrated.dump().await;

    let database = with_pgmq().await;
    let script = migrate::script();
    database.run(script.clone()).await;
    assert_eq!(database.dump().await, expected);
    assert_eq!(database.digests().await, migrated.digests().await);
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .is_unchanged()
    );
    assert!(migrate::status(&database.pool).await.unwrap().is_current());

    let applied_at = database.applied_at().await;
    database.run(script).await;
    assert_eq!(database.dump().await, expected);
    assert_eq!(database.applied_at().await, applied_at);
}

#[tokio::test]
async fn the_script_is_accepted_by_psql() {
    let database = with_pgmq().await;
    database.psql(&migrate::script()).await;
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .is_unchanged()
    );
}

#[tokio::test]
async fn the_script_upgrades_an_older_database() {
    let migrated = blank().await;
    migrate::migrate(&migrated.pool).await.unwrap();
    let database = blank().await;
    Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    database.run(migrate::script()).await;
    assert_eq!(database.dump().await, migrated.dump().await);
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .is_unchanged()
    );
}

#[tokio::test]
async fn twenty_scripts_at_once_are_safe() {
    let database = with_pgmq().await;
    let scripts = (0..20).map(|_| {
        let database = database.clone();
        tokio::spawn(async move { database.run_alone(migrate::script()).await })
    });
    for script in scripts.collect::<Vec<_>>() {
        script.await.unwrap();
    }
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .is_unchanged()
    );
}

const A: Function = Function {
    name: "a",
    sql: "create or replace function pgflow.a(x int) returns int language sql as $$ select 1 $$;",
};
const A_OF_TEXT: Function = Function {
    name: "a",
    sql: "create or replace function pgflow.a(x text) returns int language sql as $$ select 2 $$;",
};
const NEXT: Migration = Migration {
    version: 2,
    name: "next",
    sql: "create table pgflow.another (n int);",
};
const B: Function = Function {
    name: "b",
    sql: "create or replace function pgflow.b() returns int language sql as $$ select 1 $$;",
};

#[tokio::test]
async fn the_script_drops_what_migrate_drops() {
    let older = Migrator::new().with_files(&[TABLES], &[A, B]);
    let newer = Migrator::new().with_files(&[TABLES], &[A_OF_TEXT]);
    let newest = Migrator::new().with_files(&[TABLES, NEXT], &[A_OF_TEXT]);
    let (by_migrate, by_script) = (blank().await, blank().await);
    older.run(&by_migrate.pool).await.unwrap();
    older.run(&by_script.pool).await.unwrap();

    let report = newer.run(&by_migrate.pool).await.unwrap();
    assert_eq!(report.dropped_functions, ["pgflow.a(integer)"]);
    let report = newest.run(&by_migrate.pool).await.unwrap();
    assert_eq!(report.dropped_functions, ["pgflow.b()"]);
    by_script.run(newer.script()).await;
    by_script.run(newest.script()).await;
    assert_eq!(by_script.dump().await, by_migrate.dump().await);
    assert_eq!(by_script.digests().await, by_migrate.digests().await);
    assert!(newest.run(&by_script.pool).await.unwrap().is_unchanged());
}

#[tokio::test]
async fn the_script_keeps_what_a_numbered_file_dropped_and_its_file_brings_back() {
    const DROP: Migration = Migration {
        version: 2,
        name: "drop",
        sql: "drop function if exists pgflow.b();",
    };
    let older = Migrator::new().with_files(&[TABLES], &[B]);
    let newer = Migrator::new().with_files(&[TABLES, DROP], &[B]);
    let (by_migrate, by_script) = (blank().await, blank().await);
    older.run(&by_migrate.pool).await.unwrap();
    older.run(&by_script.pool).await.unwrap();
    newer.run(&by_migrate.pool).await.unwrap();
    by_script.run(newer.script()).await;
    assert_eq!(by_script.dump().await, by_migrate.dump().await);
    assert!(newer.run(&by_script.pool).await.unwrap().is_unchanged());
}

#[tokio::test]
async fn text_that_looks_like_the_scripts_own_quotes_is_kept() {
    const QUOTES: Migration = Migration {
        version: 1,
        name: "quotes",
        sql: "create table pgflow.installation (protocol_version int); insert into pgflow.installation values (1);
              comment on table pgflow.installation is $migration_0001$it's {sql} $$ and $migration_0001_guard$ $migration_0001$;",
    };
    let migrator = Migrator::new().with_files(&[QUOTES], &[]);
    let database = with_pgmq().await;
    database.run(migrator.script()).await;
    let comment = database
        .text("select obj_description('pgflow.installation'::regclass)")
        .await;
    assert_eq!(comment, "it's {sql} $$ and $migration_0001_guard$ ");
    assert!(migrator.run(&database.pool).await.unwrap().is_unchanged());
}
