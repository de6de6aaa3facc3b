//! One migrator at a time.
//!
//! The lock belongs to the transaction and not to the session. So it can't outlive the migration,
//! not even behind a pooler that passes the session on.

use std::time::Duration;

use sqlx::{Connection, PgConnection};

use super::{
    error::{LOCK_NOT_AVAILABLE, MigrateError, sqlstate},
    session, unnamed,
};

/// "pgflow" in ASCII. Scripts for people take the same lock.
pub(super) const KEY: i64 = 0x7067_666c_6f77;

/// The longest wait of a migrator for another one.
pub(super) const WAIT: Duration = Duration::from_mins(1);

/// Takes the lock for the rest of the transaction, which releases it however it ends.
pub(super) async fn acquire(
    transaction: &mut PgConnection,
    wait: Duration,
) -> Result<(), MigrateError> {
    session::set_lock_timeout(transaction, wait).await?;
    // A savepoint: after a failed wait the transaction can still ask who holds the lock.
    let mut attempt = transaction
        .begin()
        .await
        .map_err(MigrateError::doing("setting a savepoint"))?;
    let taken = unnamed::query("select pg_catalog.pg_advisory_xact_lock($1)")
        .bind(KEY)
        .execute(&mut *attempt)
        .await;
    match taken {
        Ok(_) => attempt
            .commit()
            .await
            .map_err(MigrateError::doing("taking the migration lock"))?,
        Err(error) if sqlstate(&error).as_deref() == Some(LOCK_NOT_AVAILABLE) => {
            attempt
                .rollback()
                .await
                .map_err(MigrateError::doing("waiting for the migration lock"))?;
            return Err(MigrateError::MigrationLock {
                waited: wait,
                holder: holder(transaction).await?,
            });
        }
        Err(source) => {
            return Err(MigrateError::Database {
                doing: "taking the migration lock",
                source,
            });
        }
    }
    session::set_lock_timeout(transaction, session::TABLE_LOCK_WAIT).await
}

/// Returns the pid and application name of the holder.
async fn holder(connection: &mut PgConnection) -> Result<Option<String>, MigrateError> {
    unnamed::query_scalar(
        "select pg_catalog.format('pid %s, application %s', lock.pid, activity.application_name)
         from pg_catalog.pg_locks lock
         left join pg_catalog.pg_stat_activity activity using (pid)
         where lock.locktype = 'advisory'
             and lock.granted
             and lock.database = (select oid from pg_catalog.pg_database where datname = current_database())
             and lock.objsubid = 1
             and (lock.classid::bigint << 32) + lock.objid::bigint = $1",
    )
    .bind(KEY)
    .fetch_optional(connection)
    .await
    .map_err(MigrateError::doing("looking for the holder of the migration lock"))
}
