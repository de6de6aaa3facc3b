//! The server that all share, and the database that each gets for itself.

use std::str::FromStr;

use futures_util::future::try_join_all;
use pgflow::dev::DevDatabase;
use sqlx::{
    AssertSqlSafe, Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{Result, options::Options};

/// Durable, as in production; those of the other benchmarks.
const SETTINGS: [(&str, &str); 5] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "512MB"),
    ("max_wal_size", "4GB"),
];

/// The extension that counts statements.
const STATEMENTS: &str = "pg_stat_statements";

#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    counts_statements: bool,
    // Ends with this value.
    _private: Option<DevDatabase>,
}

impl Server {
    /// The server at `--url`, else a private one.
    pub(crate) async fn start(options: &Options) -> Result<Self> {
        let private = match options.url {
            Some(_) => None,
            None => Some(private(options).await?),
        };
        let url = private.as_ref().map(DevDatabase::url);
        let url = url.or(options.url.as_deref()).unwrap_or_default();
        Ok(Self {
            url: url.to_owned(),
            counts_statements: options.statements,
            _private: private,
        })
    }

    /// Version and settings, as the server says.
    pub(crate) async fn conditions(&self) -> Result<Vec<(String, String)>> {
        let mut connection = PgConnection::connect(&self.url).await.map_err(|error| {
            format!("the server can't be reached; expected `--url` to name a running one: {error}")
        })?;
        let mut names = vec!["server_version"];
        names.extend(SETTINGS.iter().map(|(name, _)| *name));
        let mut conditions = Vec::new();
        for name in names {
            let value = sqlx::query_scalar("select current_setting($1)")
                .bind(name)
                .fetch_one(&mut connection)
                .await?;
            conditions.push((name.to_owned(), value));
        }
        Ok(conditions)
    }

    /// A new, empty database.
    pub(crate) async fn database(&self, connections: u16) -> Result<Database> {
        let name = format!("peers_{}", std::process::id());
        let mut admin = PgConnection::connect(&self.url).await?;
        for sql in [
            format!("drop database if exists {name} with (force)"),
            format!("create database {name} template template0"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(sql))
                .execute(&mut admin)
                .await?;
        }
        let options = PgConnectOptions::from_str(&self.url)?.database(&name);
        let observer = PgPoolOptions::new()
            .max_connections(1)
            .connect_with(options.clone())
            .await?;
        if self.counts_statements {
            let sql = format!("create extension {STATEMENTS}");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&observer).await?;
        }
        Ok(Database {
            name,
            url: self.url.clone(),
            options,
            connections,
            admin,
            observer,
        })
    }
}

async fn private(options: &Options) -> Result<DevDatabase> {
    let mut builder = DevDatabase::builder().ignore_environment();
    for (name, value) in SETTINGS {
        builder = builder.setting(name, value);
    }
    if options.statements {
        builder = builder.setting("shared_preload_libraries", STATEMENTS);
    }
    Ok(builder.start().await?)
}

/// A database of one contestant.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
    url: String,
    options: PgConnectOptions,
    connections: u16,
    admin: PgConnection,
    /// One connection to look on with.
    pub(crate) observer: PgPool,
}

impl Database {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Of the server; another database than this.
    pub(crate) fn server_url(&self) -> &str {
        &self.url
    }

    pub(crate) fn connections(&self) -> u16 {
        self.connections
    }

    /// The pool of a contestant, all its connections open.
    pub(crate) async fn pool(&self) -> Result<PgPool> {
        self.pool_of(self.connections).await
    }

    pub(crate) async fn pool_of(&self, connections: u16) -> Result<PgPool> {
        let pool = PgPoolOptions::new()
            .max_connections(connections.into())
            .min_connections(connections.into())
            .connect_with(self.options.clone())
            .await?;
        drop(try_join_all((0..connections).map(|_| pool.acquire())).await?);
        Ok(pool)
    }

    /// Puts what was queued in the state that a server finds it in after a while: statistics are
    /// there, nothing waits to be written.
    pub(crate) async fn settle(&self) -> Result<()> {
        for sql in ["vacuum (analyze)", "checkpoint"] {
            sqlx::raw_sql(sql).execute(&self.observer).await?;
        }
        Ok(())
    }

    pub(crate) async fn discard(mut self) -> Result<()> {
        self.observer.close().await;
        let sql = format!("drop database {} with (force)", self.name);
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut self.admin)
            .await?;
        Ok(())
    }
}
