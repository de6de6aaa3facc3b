use std::time::Duration;

use super::session::TABLE_LOCK_WAIT;

/// The reason why a database could not be migrated; the database is unchanged.
///
/// Only PGMQ's own SQL, where the server has no `pgmq` extension, is committed before the rest and
/// stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The server is too old.
    #[error(
        "the server runs Postgres {version}; expected Postgres 14 or newer; upgrade the server"
    )]
    ServerTooOld {
        /// The version string of the server.
        version: String,
    },

    /// Another migrator works on the database for longer than this one waits.
    #[error(
        "another session still holds the migration lock after {} s{}; expected it to finish; \
         wait for it, or end that session, and run `pgflow migrate` again",
        waited.as_secs_f32(), holder.as_deref().map(|who| format!(" ({who})")).unwrap_or_default()
    )]
    MigrationLock {
        /// The time for which this migrator waited.
        waited: Duration,
        /// The session that holds the lock.
        holder: Option<String>,
    },

    /// A table is in use by a transaction that did not end in time.
    #[error(
        "{what} waited too long for a table that another transaction uses; expected each lock within {} s; \
         end long transactions (see pg_stat_activity) and run `pgflow migrate` again", limit.as_secs()
    )]
    TableLock {
        /// The part that was being applied.
        what: String,
        /// The longest wait for each lock.
        limit: Duration,
        /// The error of the database.
        source: sqlx::Error,
    },

    /// The database was migrated by a newer release.
    #[error(
        "the database is at migration {database}, this program knows migrations up to {code}; expected a program \
         at least as new as its database; update pgflow, or check which database is meant"
    )]
    DatabaseNewer {
        /// The newest migration that the database records.
        database: i32,
        /// The newest migration that this program contains.
        code: i32,
    },

    /// A newer migration is recorded although an older one is not.
    #[error(
        "the database records migration {newer} but not {missing}; expected all up to the newest; \
         restore the row of pgflow.schema_migrations that was deleted, or restore a backup"
    )]
    HistoryGap {
        /// The migration without a record.
        missing: i32,
        /// The newest recorded one.
        newer: i32,
    },

    /// A released migration was changed.
    #[error(
        "migration {version:04}_{name} differs from the one that was applied; expected released files never to change; \
         restore the file, and put the change into a new migration"
    )]
    Edited {
        /// Its number.
        version: i32,
        /// Its name.
        name: String,
    },

    /// Schema `pgflow` holds something else.
    #[error(
        "schema pgflow exists but was not installed by this project (it holds {found} and no schema_migrations); \
         expected no such schema, an empty one, or one that `pgflow migrate` made; use another database, or rename \
         that schema"
    )]
    ForeignSchema {
        /// One of the objects in it.
        found: String,
    },

    /// The role may not create a schema that is missing.
    #[error(
        "role {role} may not create schema {schema} in database {database}; expected the CREATE privilege; \
         run `{grant}` as the owner of the database"
    )]
    CreateNotPermitted {
        /// The schema that is missing.
        schema: &'static str,
        /// The connected role.
        role: String,
        /// The connected database.
        database: String,
        /// The statement that helps.
        grant: String,
    },

    /// A `pgmq` schema is there that lacks something.
    #[error(
        "schema pgmq is incomplete: {} missing; expected PGMQ 1.5 or newer; upgrade it (`alter extension pgmq update` \
         where it is an extension), or, if it holds no queue, `drop schema pgmq cascade` and run `pgflow migrate` again",
        missing.join(", ")
    )]
    PgmqIncomplete {
        /// The parts that pgflow needs and did not find.
        missing: Vec<String>,
    },

    /// PGMQ could not be installed.
    #[error(
        "PGMQ could not be installed; expected its extension or its SQL to install; \
         install PGMQ by hand and run `pgflow migrate` again"
    )]
    PgmqInstall(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// A numbered file failed.
    #[error(
        "migration {version:04}_{name} failed{}; nothing was changed; put right what the cause says \
         and run `pgflow migrate` again", line_suffix(*line)
    )]
    Migration {
        /// Its number.
        version: i32,
        /// Its name.
        name: &'static str,
        /// The line in the file, if the database reports it.
        line: Option<usize>,
        /// The error of the database.
        source: sqlx::Error,
    },

    /// A function could not be created or replaced.
    #[error(
        "function {name} could not be applied{}; nothing was changed; if its signature or result type changed, \
         a numbered migration must drop the old one", line_suffix(*line)
    )]
    Function {
        /// Its name.
        name: &'static str,
        /// The line in the file, if the database reports it.
        line: Option<usize>,
        /// The error of the database.
        source: sqlx::Error,
    },

    /// A recorded function that the code no longer has can't be dropped.
    #[error(
        "function {signature} is no longer part of pgflow and could not be dropped; expected nothing to depend on it; \
         drop what does, and run `pgflow migrate` again"
    )]
    Drop {
        /// The function.
        signature: String,
        /// The error of the database.
        source: sqlx::Error,
    },

    /// A function's name is used more or less often than once.
    #[error(
        "function pgflow.{name} exists {} times{}; expected it once; drop the others", found.len(), listed(found)
    )]
    NotOneFunction {
        /// Its name.
        name: String,
        /// Every signature of that name.
        found: Vec<String>,
    },

    /// The database could not be reached, or a statement of the migrator itself failed.
    #[error(
        "{doing} failed; expected a database that can be reached and written; nothing was changed"
    )]
    Database {
        /// The action of the migrator.
        doing: &'static str,
        /// The error of the database.
        source: sqlx::Error,
    },
}

impl MigrateError {
    /// For `map_err`: says what the migrator was doing.
    pub(super) fn doing(doing: &'static str) -> impl Fn(sqlx::Error) -> Self {
        move |source| Self::Database { doing, source }
    }

    /// Returns whether the database ended the transaction because others waited for it in a circle.
    pub(super) fn is_deadlock(&self) -> bool {
        let (Self::TableLock { source, .. }
        | Self::Migration { source, .. }
        | Self::Function { source, .. }
        | Self::Drop { source, .. }
        | Self::Database { source, .. }) = self
        else {
            return false;
        };
        sqlstate(source).as_deref() == Some(DEADLOCK_DETECTED)
    }

    /// Converts the error of a statement that changes the schema: a lock that was not granted, or
    /// another one.
    pub(super) fn changing(
        what: String,
        source: sqlx::Error,
        otherwise: impl FnOnce(sqlx::Error) -> Self,
    ) -> Self {
        if sqlstate(&source).as_deref() == Some(LOCK_NOT_AVAILABLE) {
            let limit = TABLE_LOCK_WAIT;
            return Self::TableLock {
                what,
                limit,
                source,
            };
        }
        otherwise(source)
    }
}

fn line_suffix(line: Option<usize>) -> String {
    line.map(|line| format!(" at line {line}"))
        .unwrap_or_default()
}

fn listed(found: &[String]) -> String {
    if found.is_empty() {
        String::new()
    } else {
        format!(" ({})", found.join(", "))
    }
}

/// The SQLSTATE of a database error.
pub(super) fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

/// SQLSTATE `lock_not_available`: a lock was not granted within `lock_timeout`.
pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";

/// SQLSTATE `deadlock_detected`.
const DEADLOCK_DETECTED: &str = "40P01";

/// SQLSTATE `insufficient_privilege`.
pub(super) const INSUFFICIENT_PRIVILEGE: &str = "42501";
