//! Connections.

use std::time::Duration;

use anyhow::Context as _;
use pgflow_runtime::migrate;
use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{arguments::Connection, failure::Failure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A pool of a database that can be reached.
pub(crate) async fn pool(connection: &Connection) -> Result<PgPool, Failure> {
    let options = options(connection)?;
    // A pool would try again and again, and only say that it ran out of time.
    connect(&options).await?.close().await?;
    Ok(pool_of(options))
}

fn pool_of(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(2)
        .connect_lazy_with(options)
}

/// A pool of a database that is ready for this release.
pub(crate) async fn ready_pool(connection: &Connection) -> Result<PgPool, Failure> {
    ready(connection).await?.close().await?;
    Ok(pool_of(options(connection)?))
}

/// A connection to a database that is ready for this release.
pub(crate) async fn ready(connection: &Connection) -> Result<PgConnection, Failure> {
    let options = options(connection)?;
    let mut connected = connect(&options).await?;
    migrate::check_installed(&mut connected).await?;
    Ok(connected)
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Failure> {
    let expected = || {
        format!(
            "can't connect to {}; expected a running Postgres that takes the role and its password; \
             check --database-url or DATABASE_URL, or start a local one with `pgflow dev`",
            place(options)
        )
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options))
        .await
        .with_context(expected)?;
    Ok(connected.with_context(expected)?)
}

fn options(connection: &Connection) -> Result<PgConnectOptions, Failure> {
    let url = connection.database_url.as_deref().unwrap_or_default();
    if url.is_empty() {
        return Err(Failure::usage(
            "no database was named; expected --database-url or the environment variable DATABASE_URL; \
             for a local one, run `pgflow dev`",
        ));
    }
    let options: PgConnectOptions = url.parse().map_err(|error| {
        Failure::usage(format!(
            "the database's URL can't be read ({error}); expected postgres://user:password@host:port/database, \
             with special characters of the password percent-encoded; check --database-url or DATABASE_URL"
        ))
    })?;
    Ok(options.application_name("pgflow"))
}

/// Where a connection leads, without the password.
fn place(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let database = options.get_database().unwrap_or(options.get_username());
    format!(
        "database {database} at {host}:{} as {}",
        options.get_port(),
        options.get_username()
    )
}
