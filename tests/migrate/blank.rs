//! Databases without pgflow.

use std::{
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use sqlx::{
    AssertSqlSafe, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

/// A database of its own for one test.
pub(crate) struct Blank {
    pub(crate) pool: PgPool,
    pub(crate) options: PgConnectOptions,
    pub(crate) name: String,
}

fn server() -> PgConnectOptions {
    std::env::var("PGFLOW_SCRATCH_URL").unwrap().parse().unwrap()
}

pub(crate) async fn blank() -> Blank {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "migrate_{}_{}",
        std::process::id(),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    );
    let admin = PgPoolOptions::new()
        .max_connections(1)
        .connect_with(server())
        .await
        .unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("create database {name}")))
        .execute(&admin)
        .await
        .unwrap();
    let options = server().database(&name);
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .connect_with(options.clone())
        .await
        .unwrap();
    Blank {
        pool,
        options,
        name,
    }
}

impl Blank {
    /// Runs any number of statements.
    pub(crate) async fn run(&self, sql: impl Into<String>) {
        sqlx::raw_sql(AssertSqlSafe(sql.into()))
            .execute(&self.pool)
            .await
            .unwrap();
    }

    pub(crate) async fn text(&self, sql: &'static str) -> String {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    /// A pool of another role; creates the role as an ordinary one.
    pub(crate) async fn pool_of_new_role(&self, role: &str) -> PgPool {
        self.run(format!("create role {role} login")).await;
        PgPoolOptions::new()
            .max_connections(2)
            .connect_with(self.options.clone().username(role))
            .await
            .unwrap()
    }

    /// `pg_dump --schema-only`, without what differs from call to call.
    pub(crate) async fn dump(&self) -> String {
        let bin: String =
            sqlx::query_scalar("select setting from pg_catalog.pg_config() where name = 'BINDIR'")
                .fetch_one(&self.pool)
                .await
                .unwrap();
        let host = match self.options.get_socket() {
            Some(socket) => socket.clone(),
            None => PathBuf::from(self.options.get_host()),
        };
        let output = Command::new(PathBuf::from(bin).join("pg_dump"))
            .arg("--schema-only")
            .arg("--host")
            .arg(host)
            .args(["--port", &self.options.get_port().to_string()])
            .args(["--username", self.options.get_username()])
            .arg(&self.name)
            .output()
            .expect("pg_dump can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            // Tokens that newer versions of pg_dump draw at random.
            .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}
