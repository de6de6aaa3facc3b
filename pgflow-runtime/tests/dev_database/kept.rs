//! Data that is kept.

use std::fs;
use std::path::Path;

use pgflow_runtime::dev::{DevDatabase, DevError};
use sqlx::PgPool;

use crate::owner::{Owner, Then, command, directory, eventually, is_alive, keeping, server_pid};
use crate::place::{place, private};
use crate::private::show;

async fn start(path: &Path) -> Result<DevDatabase, DevError> {
    private().data_dir(path).start().await
}

async fn count(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from notes")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn survives_its_server_under_the_same_url() {
    let (_parent, path) = place();
    let first = start(&path).await.unwrap();
    let pool = first.pool().await.unwrap();
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(show(&pool, setting).await, "on", "{setting}");
    }
    sqlx::query("create table notes as select 1 as note")
        .execute(&pool)
        .await
        .unwrap();
    let url = first.url().to_owned();
    drop(first);

    let second = start(&path).await.unwrap();
    assert_eq!(second.url(), url);
    assert_eq!(count(&second.pool().await.unwrap()).await, 1);
}

#[tokio::test]
async fn a_second_owner_learns_where_the_server_is() {
    let (_parent, path) = place();
    let first = start(&path).await.unwrap();
    let error = start(&path).await.unwrap_err();
    assert!(
        matches!(&error, DevError::DataInUse { url, .. } if url == first.url()),
        "{error}"
    );
    let from_another_process = Owner::spawn(keeping(command(Then::Report), &path)).ready();
    assert!(from_another_process.unwrap_err().contains(first.url()));
    // Neither disturbed the first.
    first.pool().await.unwrap();
}

#[tokio::test]
async fn the_next_owner_waits_for_the_server_of_a_killed_one() {
    let (_parent, path) = place();
    let mut owner = Owner::spawn(keeping(command(Then::Hold), &path));
    let mut ready = owner.ready().unwrap();
    let pid = server_pid(&path);
    let pool = PgPool::connect(&ready.url).await.unwrap();
    sqlx::query("create table notes as select generate_series(1, 1000)")
        .execute(&pool)
        .await
        .unwrap();
    owner.kill();
    let next = start(&path).await.unwrap();
    assert!(!is_alive(&pid), "two servers on the same data");
    assert_eq!(count(&next.pool().await.unwrap()).await, 1000);
    ready.end_sibling();
}

#[tokio::test]
async fn an_interrupted_initialisation_is_repeated() {
    let (_parent, path) = place();
    let owner = Owner::spawn(keeping(command(Then::Hold), &path));
    eventually("initdb has begun", || {
        path.join("data.new/PG_VERSION").exists()
    });
    owner.kill();
    start(&path).await.unwrap().pool().await.unwrap();
}

#[tokio::test]
async fn what_an_initialisation_without_end_left_is_replaced() {
    let (_parent, path) = place();
    drop(start(&path).await.unwrap());
    // As after a power cut, where nobody cleans up.
    fs::rename(path.join("data"), path.join("data.new")).unwrap();
    start(&path).await.unwrap().pool().await.unwrap();
    assert!(!path.join("data.new").exists());
}

#[tokio::test]
async fn a_deep_directory_works_too() {
    let (parent, _) = place();
    let path = parent
        .path()
        .join("a directory, \"quoted\"")
        .join("d".repeat(100));
    let database = start(&path).await.unwrap();
    let sockets = directory(database.url());
    assert!(!sockets.starts_with(&path));
    database.pool().await.unwrap();
    drop(database);
    assert!(!sockets.exists());
    assert!(path.join("data/PG_VERSION").exists());
}

#[tokio::test]
async fn an_odd_directory_works_too() {
    let (parent, _) = place();
    let path = parent.path().join("it's, \"odd\" ü");
    start(&path).await.unwrap().pool().await.unwrap();
}

#[tokio::test]
async fn data_of_another_version_is_left_alone() {
    let (_parent, path) = place();
    drop(start(&path).await.unwrap());
    let version = path.join("data/PG_VERSION");
    fs::write(&version, "9\n").unwrap();
    let error = start(&path).await.unwrap_err();
    assert!(
        matches!(error, DevError::DataVersion { written_by: 9, .. }),
        "{error}"
    );
    assert_eq!(fs::read_to_string(version).unwrap(), "9\n");
}
