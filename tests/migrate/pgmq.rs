use pgflow_runtime::migrate::{self, MigrateError, PgmqState};

use super::blank;

#[tokio::test]
async fn what_is_there_is_used_as_it_is() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
        .run("drop schema pgflow cascade; comment on function pgmq.create(text) is 'ours'")
        .await;
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert!(!report.installed_pgmq);
    assert!(!report.is_unchanged());
    assert_eq!(
        database
            .text("select obj_description('pgmq.create(text)'::regprocedure)")
            .await,
        "ours"
    );
}

#[tokio::test]
async fn sql_installed_by_hand_is_used_without_a_version() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database.forget_extension().await;
    database
        .run("drop schema pgflow cascade; drop table if exists pgmq.__pgmq_migrations")
        .await;
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(report.pgmq, PgmqState::Sql { version: None });
}

#[tokio::test]
async fn an_empty_schema_is_filled() {
    let database = blank().await;
    database.run("create schema pgmq; create table pgmq.__pgmq_migrations (name text primary key, version text not null, run_at timestamptz not null default clock_timestamp())").await;
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .installed_pgmq
    );
}

#[tokio::test]
async fn an_incomplete_schema_is_refused_with_what_is_missing() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database.forget_extension().await;
    database
        .run("drop schema pgflow cascade; drop function pgmq.archive(text, bigint[]); drop function pgmq.set_vt(text, bigint, integer)")
        .await;
    let refused = migrate::migrate(&database.pool).await.unwrap_err();
    let MigrateError::PgmqIncomplete { missing } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        missing,
        &[
            "pgmq.archive(text, bigint[])",
            "pgmq.set_vt(text, bigint, integer)"
        ]
    );
    assert_eq!(database.schemas().await, ["pgmq"]);
    let status = migrate::status(&database.pool).await.unwrap();
    assert!(matches!(status.pgmq, PgmqState::Incomplete { .. }));
}
