//! The connection and the transaction that a migrator works in.

use std::time::Duration;

use sqlx::{
    ConnectOptions, Connection, PgConnection, PgPool, Postgres, Transaction,
    postgres::PgConnectOptions,
};

use super::error::MigrateError;
use super::unnamed;

/// The longest wait of a migration for each lock on a table: queries that queue up behind it wait
/// too.
pub(super) const TABLE_LOCK_WAIT: Duration = Duration::from_secs(10);

/// Local to the transaction, so nothing of it stays in the session.
pub(super) const SETTINGS: &str = include_str!("sql/settings.sql");

/// Returns the options to connect to the pool's database: the migrator has its own connections, so
/// that a busy pool of one can't block it.
pub(super) fn options(pool: &PgPool) -> PgConnectOptions {
    pool.connect_options()
        .as_ref()
        .clone()
        .application_name("pgflow migrate")
        .disable_statement_logging()
}

pub(super) async fn connect(pool: &PgPool) -> Result<PgConnection, MigrateError> {
    PgConnection::connect_with(&options(pool))
        .await
        .map_err(MigrateError::doing("connecting"))
}

/// Begins the one transaction. Dropping it, for whatever reason, leaves the database as it was.
pub(super) async fn begin(
    connection: &mut PgConnection,
) -> Result<Transaction<'_, Postgres>, MigrateError> {
    // The role's own defaults could be read-only or serializable.
    begin_with(
        connection,
        "begin transaction isolation level read committed, read write",
    )
    .await
}

/// Begins a transaction that sees one state of the database and can't change it.
pub(super) async fn begin_reading(
    connection: &mut PgConnection,
) -> Result<Transaction<'_, Postgres>, MigrateError> {
    begin_with(
        connection,
        "begin transaction isolation level repeatable read, read only",
    )
    .await
}

async fn begin_with<'c>(
    connection: &'c mut PgConnection,
    statement: &'static str,
) -> Result<Transaction<'c, Postgres>, MigrateError> {
    let mut transaction = connection
        .begin_with(statement)
        .await
        .map_err(MigrateError::doing("beginning a transaction"))?;
    sqlx::raw_sql(SETTINGS)
        .execute(&mut *transaction)
        .await
        .map_err(MigrateError::doing("setting up the transaction"))?;
    Ok(transaction)
}

pub(super) async fn set_lock_timeout(
    connection: &mut PgConnection,
    timeout: Duration,
) -> Result<(), MigrateError> {
    // Postgres takes 0 for "as long as it takes".
    let milliseconds = timeout.as_millis().max(1);
    unnamed::query("select pg_catalog.set_config('lock_timeout', $1, true)")
        .bind(milliseconds.to_string())
        .execute(connection)
        .await
        .map_err(MigrateError::doing("setting lock_timeout"))?;
    Ok(())
}

/// Postgres 14: what pgflow's SQL is written for.
pub(super) const OLDEST_SERVER: i32 = 140_000;

pub(super) async fn require_server_version(
    connection: &mut PgConnection,
) -> Result<(), MigrateError> {
    let (number, version): (i32, String) = unnamed::query_as(
        "select current_setting('server_version_num')::int, current_setting('server_version')",
    )
    .fetch_one(connection)
    .await
    .map_err(MigrateError::doing("asking for the server's version"))?;
    if number < OLDEST_SERVER {
        return Err(MigrateError::ServerTooOld { version });
    }
    Ok(())
}
