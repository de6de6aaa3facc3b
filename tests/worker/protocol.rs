//! Workers and databases of different releases.

use pgflow::prelude::*;
use pgflow::startup::StartupError;
use pgflow_migrations::{LATEST_VERSION, PROTOCOL_VERSION};
use pgflow_runtime::migrate::{self, Migrator, NotReadyError, Release, check_installed_for};

use super::{all_rows, make_local, run_sql};
use crate::support::TestDb;

struct Audit;

#[flow(input = u32)]
impl Audit {
    #[step]
    async fn parse(input: u32) -> StepResult<u32> {
        Ok(input)
    }
}

/// The release before step queues.
const OLD: Release = Release {
    migration: 2,
    protocol: 1,
};

/// A database as that release left it.
async fn old_schema(environment: &str) -> TestDb {
    let database = TestDb::blank().await;
    let migrator = Migrator::new().up_to(OLD.migration);
    migrator.run(&database.pool).await.unwrap();
    let set = "update pgflow.installation set environment = $1";
    sqlx::query(set)
        .bind(environment)
        .execute(&database.pool)
        .await
        .unwrap();
    database
}

async fn new_schema(environment: &str) -> TestDb {
    let database = TestDb::new().await;
    if environment == "local" {
        make_local(&database.pool).await;
    }
    database
}

async fn start_error(database: &TestDb, release: Release) -> StartupError {
    let before = all_rows(&database.pool, &[]).await;
    let worker = FlowWorker::<Audit>::new().as_release(release);
    let error = worker.start(&database.pool).await.unwrap_err();
    assert_eq!(
        all_rows(&database.pool, &[]).await,
        before,
        "after: {error}"
    );
    error
}

async fn expect_start(database: &TestDb, release: Release) {
    let worker = FlowWorker::<Audit>::new().as_release(release);
    let worker = worker.start(&database.pool).await.unwrap();
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn the_release_before_is_the_one_that_the_cells_are_about() {
    assert_eq!((LATEST_VERSION, PROTOCOL_VERSION), (12, 2));
    assert_eq!((OLD.migration, OLD.protocol), (2, 1));
}

#[tokio::test]
async fn an_old_worker_and_an_old_schema_fit() {
    for environment in ["production", "local"] {
        let database = old_schema(environment).await;
        let mut connection = database.pool.acquire().await.unwrap();
        let installed = check_installed_for(&mut connection, OLD).await.unwrap();
        assert_eq!(
            (installed.version, installed.environment.as_str()),
            (2, environment)
        );
    }
    // The functions of that release are not here: those of today under the numbers of then.
    let database = new_schema("production").await;
    run_sql(
        &database.pool,
        "delete from pgflow.schema_migrations where version > 2; update pgflow.installation set protocol_version = 1",
    )
    .await;
    expect_start(&database, OLD).await;
}

#[tokio::test]
async fn an_old_worker_is_refused_by_a_new_schema() {
    for environment in ["production", "local"] {
        let database = new_schema(environment).await;
        let error = start_error(&database, OLD).await;
        assert!(
            matches!(
                error,
                StartupError::NotReady(NotReadyError::DatabaseNewer {
                    database: LATEST_VERSION,
                    code: 2
                })
            ),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains("update pgflow"), "{text}");
    }
}

#[tokio::test]
async fn a_new_worker_is_refused_by_an_old_production_schema_and_migrates_a_local_one() {
    let database = old_schema("production").await;
    let error = start_error(&database, Release::THIS).await;
    assert!(
        matches!(
            error,
            StartupError::NotReady(NotReadyError::DatabaseOlder {
                database: 2,
                code: LATEST_VERSION
            })
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("run `pgflow migrate`"),
        "{error}"
    );

    let database = old_schema("local").await;
    expect_start(&database, Release::THIS).await;
    let status = migrate::status(&database.pool).await.unwrap();
    assert_eq!(
        status.installation.unwrap().protocol_version,
        PROTOCOL_VERSION
    );
}

#[tokio::test]
async fn a_new_worker_and_a_new_schema_fit() {
    for environment in ["production", "local"] {
        expect_start(&new_schema(environment).await, Release::THIS).await;
    }
}

#[tokio::test]
async fn the_same_migrations_with_another_protocol_are_refused_with_the_way_out() {
    for (release, advice) in [
        (
            Release {
                protocol: PROTOCOL_VERSION - 1,
                ..Release::THIS
            },
            "update pgflow: build the program with the release that migrated the database",
        ),
        (
            Release {
                protocol: PROTOCOL_VERSION + 1,
                ..Release::THIS
            },
            "run `pgflow migrate`",
        ),
    ] {
        let database = new_schema("production").await;
        let error = start_error(&database, release).await;
        let StartupError::NotReady(NotReadyError::Protocol {
            database: PROTOCOL_VERSION,
            code,
        }) = error
        else {
            panic!("{error}");
        };
        assert_eq!(code, release.protocol);
        let text = error.to_string();
        let versions = format!(
            "the database speaks protocol {PROTOCOL_VERSION}, this program protocol {code};"
        );
        assert!(text.starts_with(&versions), "{text}");
        assert!(text.contains(advice), "{text}");
    }
}

#[tokio::test]
async fn a_local_database_with_an_older_protocol_is_migrated() {
    let database = new_schema("local").await;
    let older = "update pgflow.installation set protocol_version = 1";
    run_sql(&database.pool, older).await;
    expect_start(&database, Release::THIS).await;
    let status = migrate::status(&database.pool).await.unwrap();
    assert_eq!(
        status.installation.unwrap().protocol_version,
        PROTOCOL_VERSION
    );
}
