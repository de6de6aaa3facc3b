//! The script refuses what `migrate` refuses, and changes nothing then.

use pgflow_runtime::migrate;

use super::{Blank, blank};

async fn assert_refused(database: &Blank, expected: &str) {
    let before = database.dump().await;
    let message = database.error_of(migrate::script()).await;
    assert!(message.contains(expected), "{message}");
    assert_eq!(database.dump().await, before);
}

#[tokio::test]
async fn without_pgmq() {
    let database = blank().await;
    assert_refused(
        &database,
        "PGMQ is not there or incomplete: pgmq.archive(text, bigint[]), pgmq.create(text)",
    )
    .await;
}

#[tokio::test]
async fn with_an_incomplete_pgmq() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database.forget_extension().await;
    database
        .run("drop schema pgflow cascade; drop function pgmq.set_vt(text, bigint, integer)")
        .await;
    assert_refused(
        &database,
        "incomplete: pgmq.set_vt(text, bigint, integer) missing",
    )
    .await;
}

#[tokio::test]
async fn a_schema_of_somebody_else() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
        .run("drop schema pgflow cascade; create schema pgflow; create table pgflow.flows (id int)")
        .await;
    assert_refused(
        &database,
        "not installed by this project (it holds relation flows",
    )
    .await;
}

#[tokio::test]
async fn a_record_that_does_not_fit() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
        .run("update pgflow.schema_migrations set digest = 'another' where version = 1")
        .await;
    assert_refused(&database, "migration 1 (core) differs").await;
    database
        .run("delete from pgflow.schema_migrations where version = 1")
        .await;
    assert_refused(&database, "but not 1").await;
    database
        .run("insert into pgflow.schema_migrations values (99, 'future', '')")
        .await;
    assert_refused(&database, "the database is at migration 99").await;
}

#[tokio::test]
async fn an_overload_that_somebody_added() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
        .run("create function pgflow.start_flow() returns int language sql as 'select 1'")
        .await;
    assert_refused(&database, "more than once: start_flow").await;
}
