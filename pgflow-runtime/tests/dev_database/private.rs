//! The functions of a private server, and its messages when it can't start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use pgflow_runtime::dev::{DevDatabase, DevError};
use sqlx::PgPool;

use crate::owner::{Owner, Then, command, directory};
use crate::place::{place, private};

pub(crate) async fn show(pool: &PgPool, setting: &str) -> String {
    sqlx::query_scalar("select current_setting($1)")
        .bind(setting)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn serves_through_its_pool_and_its_url() {
    let database = private().start().await.unwrap();
    assert!(database.is_private());
    let pool = database.pool().await.unwrap();
    for (setting, value) in [
        ("fsync", "off"),
        ("dynamic_shared_memory_type", "mmap"),
        ("server_encoding", "UTF8"),
        ("lc_collate", "C"),
        ("TimeZone", "UTC"),
        ("listen_addresses", ""),
        ("max_connections", "200"),
    ] {
        assert_eq!(show(&pool, setting).await, value, "{setting}");
    }
    let by_url = PgPool::connect(database.url()).await.unwrap();
    assert_eq!(show(&by_url, "fsync").await, "off");
}

#[tokio::test]
async fn serves_psql_by_the_same_url() {
    let Ok(psql) = Command::new("psql").arg("--version").output() else {
        println!("skipped: no psql on PATH");
        return;
    };
    assert!(psql.status.success());
    let database = private()
        .database("a/b c%d")
        .setting("port", "5499")
        .start()
        .await
        .unwrap();
    let output = Command::new("psql")
        .args([
            "--no-psqlrc",
            "-Atc",
            "select current_database()",
            database.url(),
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a/b c%d\n");
}

#[tokio::test]
async fn creates_the_database_and_takes_settings() {
    let name = "It's \"quoted\"";
    let builder = private()
        .database(name)
        .setting("port", "5499")
        .setting("fsync", "on");
    let database = builder.start().await.unwrap();
    let pool = database.pool().await.unwrap();
    let current: String = sqlx::query_scalar("select current_database()")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(current, name);
    assert_eq!(show(&pool, "port").await, "5499");
    assert_eq!(show(&pool, "fsync").await, "on");
}

#[tokio::test]
async fn many_at_once() {
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..3 {
        starts.spawn(private().start());
    }
    let databases: Vec<DevDatabase> = starts
        .join_all()
        .await
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    for database in &databases {
        database.pool().await.unwrap();
    }
}

#[tokio::test]
async fn tcp_needs_a_password() {
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let builder = private()
        .setting("listen_addresses", "127.0.0.1")
        .setting("port", &port);
    let database = builder.start().await.unwrap();
    let by_tcp = |password: &str| {
        let url = format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres");
        async move { PgPool::connect(&url).await }
    };
    by_tcp("").await.unwrap_err();
    by_tcp("postgres").await.unwrap_err();
    let pool = database.pool().await.unwrap();
    sqlx::query("alter role postgres password 'secret'")
        .execute(&pool)
        .await
        .unwrap();
    by_tcp("secret").await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_start_shows_its_log() {
    let error = private()
        .setting("no_such_setting", "1")
        .start()
        .await
        .unwrap_err();
    assert!(matches!(error, DevError::NotStarted { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("ended with exit status 1"), "{message}");
    assert!(
        message.contains("unrecognized configuration parameter"),
        "{message}"
    );
}

#[tokio::test]
async fn refused_choices_start_nothing() {
    for (name, value) in [
        ("port", "none"),
        ("data_directory", "/tmp"),
        ("two words", "x"),
    ] {
        let error = private().setting(name, value).start().await.unwrap_err();
        assert!(matches!(&error, DevError::Setting { name: refused, .. } if refused == name));
    }
    let error = private().database("x\0y").start().await.unwrap_err();
    assert!(matches!(error, DevError::Database { .. }), "{error}");
}

#[test]
fn the_environment_names_the_server() {
    let url = "postgres://nobody.invalid/app";
    let mut command = command(Then::Report);
    command.env("DATABASE_URL", url);
    let ready = Owner::spawn(command).ready().unwrap();
    assert!(!ready.is_private);
    assert_eq!(ready.url, url);
}

async fn environment(pool: &PgPool) -> String {
    let environment = sqlx::query_scalar("select environment from pgflow.installation");
    environment.fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn migrated_and_marked_as_local_when_it_is_private() {
    let database = private().start().await.unwrap();
    for _ in 0..2 {
        let pool = database.migrated_pool().await.unwrap();
        assert_eq!(environment(&pool).await, "local");
    }
}

#[tokio::test]
async fn migrated_but_not_marked_when_the_environment_names_it() {
    let server = private().start().await.unwrap();
    let mut command = command(Then::Migrate);
    command.env("DATABASE_URL", server.url());
    assert!(!Owner::spawn(command).ready().unwrap().is_private);
    assert_eq!(
        environment(&server.pool().await.unwrap()).await,
        "production"
    );
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let mut command = command(Then::Report);
    command.env("DATABASE_URL", "").env("PGFLOW_PG_BIN", "");
    assert!(Owner::spawn(command).ready().unwrap().is_private);
}

#[test]
fn the_environment_of_postgres_tools_changes_nothing() {
    let mut command = command(Then::Hold);
    for (name, value) in [
        ("PGDATA", "/nonexistent"),
        ("PGPORT", "1"),
        ("PGHOST", "nobody.invalid"),
        ("PGUSER", "somebody"),
        ("PGDATABASE", "something"),
        ("PGSSLMODE", "require"),
        ("LC_ALL", "xx_XX.none"),
    ] {
        command.env(name, value);
    }
    let mut owner = Owner::spawn(command);
    owner.ready().unwrap();
    // Connects through the pool of the database.
    owner.interrupt_group();
    owner.line([crate::owner::INTERRUPTED]);
}

#[test]
fn a_wrong_binary_directory_is_named() {
    let mut command = command(Then::Report);
    command.env("PGFLOW_PG_BIN", "/nonexistent/bin");
    let error = Owner::spawn(command).ready().unwrap_err();
    assert!(
        error.contains("PGFLOW_PG_BIN is `/nonexistent/bin`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_chosen_temp_dir_is_never_replaced() {
    let (parent, _) = place();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let database = private().temp_dir(parent.path()).start().await.unwrap();
    assert_eq!(directory(database.url()).parent(), Some(parent.path()));
    drop(database);
    assert!(fs::read_dir(parent.path()).unwrap().next().is_none());
    let absent = parent.path().join("absent");
    private().temp_dir(absent).start().await.unwrap_err();
}

#[test]
fn a_long_tmpdir_is_replaced() {
    let temporary = tempfile::tempdir().unwrap();
    let deep = temporary.path().join("d".repeat(100));
    fs::create_dir(&deep).unwrap();
    let mut command = command(Then::Report);
    command.env("TMPDIR", &deep);
    let ready = Owner::spawn(command).ready().unwrap();
    assert_eq!(
        directory(&ready.url).parent().unwrap().to_str(),
        Some("/tmp")
    );
}
