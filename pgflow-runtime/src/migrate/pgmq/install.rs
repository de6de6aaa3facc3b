use std::time::Duration;

use sqlx::{Connection, PgConnection, PgPool, postgres::PgPoolOptions};

use super::{MigrateError, PgmqState, probe};
use crate::migrate::unnamed;
use crate::migrate::{
    error::{INSUFFICIENT_PRIVILEGE, sqlstate},
    privilege, session,
};

/// The longest time for the installation of the SQL; another program may be installing it too.
const INSTALL_WAIT: Duration = Duration::from_mins(1);

/// Installs the extension where the server offers it and the role may, else the SQL that the `pgmq`
/// crate contains.
pub(super) async fn install(
    transaction: &mut PgConnection,
    pool: &PgPool,
) -> Result<(), MigrateError> {
    privilege::require_create(transaction, "pgmq").await?;
    if is_extension_available(transaction).await? && create_extension(transaction).await? {
        return Ok(());
    }
    install_sql(pool).await
}

async fn is_extension_available(connection: &mut PgConnection) -> Result<bool, MigrateError> {
    unnamed::query_scalar(
        "select exists (select from pg_catalog.pg_available_extensions where name = 'pgmq')",
    )
    .fetch_one(connection)
    .await
    .map_err(MigrateError::doing("looking for the pgmq extension"))
}

/// False when the role may not: the SQL needs fewer privileges.
async fn create_extension(transaction: &mut PgConnection) -> Result<bool, MigrateError> {
    let doing = MigrateError::doing("creating the pgmq extension");
    // A savepoint: the transaction continues when the attempt fails.
    let mut attempt = transaction.begin().await.map_err(&doing)?;
    let created = sqlx::raw_sql("create extension pgmq")
        .execute(&mut *attempt)
        .await;
    let Err(error) = created else {
        attempt.commit().await.map_err(&doing)?;
        return Ok(true);
    };
    attempt.rollback().await.map_err(&doing)?;
    if sqlstate(&error).as_deref() == Some(INSUFFICIENT_PRIVILEGE) {
        return Ok(false);
    }
    // Another program may have created it meanwhile; it does not take our lock.
    match probe(transaction).await? {
        PgmqState::Absent => Err(MigrateError::PgmqInstall(Box::new(error))),
        _ => Ok(true),
    }
}

/// The installer opens a transaction of its own and commits it, before ours continues.
async fn install_sql(pool: &PgPool) -> Result<(), MigrateError> {
    let installer_pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(session::options(pool));
    let installed = tokio::time::timeout(
        INSTALL_WAIT,
        pgmq::install::install_sql_from_embedded(&installer_pool),
    )
    .await;
    installer_pool.close().await;
    match installed {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(MigrateError::PgmqInstall(Box::new(error))),
        Err(elapsed) => Err(MigrateError::PgmqInstall(Box::new(elapsed))),
    }
}
