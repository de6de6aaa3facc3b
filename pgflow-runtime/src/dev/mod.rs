//! A Postgres for development, examples and tests.
//!
//! [`DevDatabase::start`] uses the server that `DATABASE_URL` names. Without it, it starts a
//! private server from the Postgres binaries of this machine, version 14 or newer. It looks for
//! them in the directory that `PGFLOW_PG_BIN` names, or else on `PATH`, in the directory of
//! `pg_config`, and in the usual places of the platform. A private server
//!
//! - listens on a Unix socket that only its user (and root) can reach;
//! - stops when its owner ends, in any way, and deletes its data, unless
//!   [`data_dir`](DevBuilder::data_dir) keeps it;
//! - runs as user `postgres` or `nobody` when root starts it, because Postgres refuses to run as
//!   root.
//!
//! Private servers need a Unix; elsewhere, set `DATABASE_URL`.
//!
//! ```no_run
//! # async fn example() -> Result<(), pgflow_runtime::dev::DevError> {
//! let database = pgflow_runtime::dev::DevDatabase::start().await?;
//! let pool = database.migrated_pool().await?;
//! # Ok(()) }
//! ```

#![cfg_attr(not(unix), allow(dead_code, reason = "what only private servers need"))]

mod builder;
#[cfg(unix)]
mod directory;
mod error;
#[cfg(unix)]
mod home;
#[cfg(unix)]
mod places;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod server;
mod settings;
#[cfg(unix)]
mod supervisor;
#[cfg(unix)]
mod url;
#[cfg(unix)]
mod user;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{Connection, PgConnection, PgPool};

use crate::migrate::migrate;
use crate::sql::environment::mark_local;

pub use builder::DevBuilder;
pub use error::DevError;

/// The oldest major version of Postgres that works.
const MINIMUM: u32 = 14;

/// A Postgres server: a private one, which stops when this is dropped and whenever this process
/// ends, or the one that `DATABASE_URL` names.
#[derive(Debug)]
pub struct DevDatabase {
    url: String,
    #[cfg(unix)]
    server: Option<server::Server>,
}

impl DevDatabase {
    /// The server that `DATABASE_URL` names, or else a private one whose data is deleted with it.
    pub async fn start() -> Result<Self, DevError> {
        Self::builder().start().await
    }

    /// Choices beyond those of [`start`](Self::start).
    pub fn builder() -> DevBuilder {
        DevBuilder::default()
    }

    /// A URL for sqlx, `psql` and everything built on libpq.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether the server is private, so that no other program uses it.
    pub fn is_private(&self) -> bool {
        #[cfg(unix)]
        return self.server.is_some();
        #[cfg(not(unix))]
        false
    }

    /// A new, connected pool.
    pub async fn pool(&self) -> Result<PgPool, DevError> {
        self.connect().await.map_err(|source| DevError::Database {
            what: "connecting to the development database".to_owned(),
            expected: if self.is_private() {
                "its server to be running"
            } else {
                "DATABASE_URL to name a running server"
            },
            source,
        })
    }

    /// A new pool of the database, migrated. On a private server it is marked as `local` as well,
    /// so that a worker may replace the stored definition of a flow that has changed.
    pub async fn migrated_pool(&self) -> Result<PgPool, DevError> {
        let pool = self.pool().await?;
        migrate(&pool).await?;
        if self.is_private() {
            let marked = mark_local(&pool).await;
            marked.map_err(|source| DevError::MarkLocal { source })?;
        }
        Ok(pool)
    }

    /// Resolves when a private server has ended without a request, with the reason; never for
    /// another server.
    pub async fn ended(&self) -> DevError {
        #[cfg(unix)]
        if let Some(server) = &self.server {
            return server.ended().await;
        }
        std::future::pending().await
    }

    /// Stops a private server and waits for its exit. Dropping does so too, but without a report
    /// and while the thread waits. Pools lose their connections.
    pub async fn stop(self) -> Result<(), DevError> {
        #[cfg(unix)]
        if let Some(server) = self.server {
            return server.stop().await;
        }
        Ok(())
    }

    async fn connect(&self) -> sqlx::Result<PgPool> {
        let mut options: PgConnectOptions = self.url.parse()?;
        if self.is_private() {
            // PGSSLMODE may ask for TLS, which a socket neither has nor needs.
            options = options.ssl_mode(PgSslMode::Disable);
        }
        // A pool continues trying, and in the end says only that its time was up; one connection
        // says why it failed, at once.
        PgConnection::connect_with(&options).await?.close().await?;
        PgPool::connect_with(options).await
    }

    fn at(url: String) -> Self {
        Self {
            url,
            #[cfg(unix)]
            server: None,
        }
    }

    #[cfg(unix)]
    async fn private(config: DevBuilder) -> Result<Self, DevError> {
        let server = server::Server::start(config).await?;
        Ok(Self {
            url: server.url().to_owned(),
            server: Some(server),
        })
    }

    #[cfg(not(unix))]
    async fn private(_config: DevBuilder) -> Result<Self, DevError> {
        Err(DevError::Unsupported)
    }
}
