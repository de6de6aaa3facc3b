//! The check whether a database is ready for a worker or a client of this release.

use pgflow_migrations::{LATEST_VERSION, PROTOCOL_VERSION};
use sqlx::PgConnection;

/// The properties that a ready database reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installed {
    /// The newest migration.
    pub version: i32,
    /// `production` or `local`.
    pub environment: String,
}

/// The reason why a database is not ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotReadyError {
    /// pgflow was never installed there.
    #[error(
        "the database has no pgflow; expected migration {code}; run `pgflow migrate` (or call `pgflow::migrate`)"
    )]
    NotInstalled {
        /// The newest migration that this program contains.
        code: i32,
    },

    /// The database needs migrations.
    #[error(
        "the database is at migration {database}; expected migration {code}; \
         run `pgflow migrate` (or call `pgflow::migrate`) of this release"
    )]
    DatabaseOlder {
        /// The newest migration that the database records.
        database: i32,
        /// The newest migration that this program contains.
        code: i32,
    },

    /// The database was migrated by a newer release.
    #[error(
        "the database is at migration {database}, this program knows migrations up to {code}; expected a program at \
         least as new as its database; update pgflow (or its command: `pgflow status` shows what is installed)"
    )]
    DatabaseNewer {
        /// The newest migration that the database records.
        database: i32,
        /// The newest migration that this program contains.
        code: i32,
    },

    /// The functions of the database speak another protocol than this program.
    #[error(
        "the database speaks protocol {database}, this program protocol {code}; expected the same; {}",
        if database < code {
            "run `pgflow migrate` (or call `pgflow::migrate`) of this release"
        } else {
            "update pgflow: build the program with the release that migrated the database"
        }
    )]
    Protocol {
        /// The protocol that the database records.
        database: i32,
        /// The protocol that this program speaks.
        code: i32,
    },

    /// The question could not be asked.
    #[error(
        "reading pgflow's installation failed; expected a database that can be reached, \
         and a role with usage on schema pgflow and select on its tables"
    )]
    Database(#[from] sqlx::Error),
}

/// The release of a program: its newest migration and its protocol.
///
/// For tests of what programs of other releases find: a real program knows [`THIS`](Self::THIS).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub migration: i32,
    pub protocol: i32,
}

impl Release {
    /// The release of this program.
    pub const THIS: Self = Self {
        migration: LATEST_VERSION,
        protocol: PROTOCOL_VERSION,
    };
}

/// Asks whether a program of this release can work with the database; changes nothing, and never
/// migrates.
pub async fn check_installed(connection: &mut PgConnection) -> Result<Installed, NotReadyError> {
    check_installed_for(connection, Release::THIS).await
}

/// Asks whether a program of any release can work with the database.
#[doc(hidden)]
pub async fn check_installed_for(
    connection: &mut PgConnection,
    release: Release,
) -> Result<Installed, NotReadyError> {
    let recorded: bool = sqlx::query_scalar(
        "select exists (
             select from pg_catalog.pg_class relation
             join pg_catalog.pg_namespace schema on schema.oid = relation.relnamespace
             where schema.nspname = 'pgflow' and relation.relname = 'schema_migrations'
         )",
    )
    .fetch_one(&mut *connection)
    .await?;
    if !recorded {
        return Err(NotReadyError::NotInstalled {
            code: release.migration,
        });
    }
    let database: i32 =
        sqlx::query_scalar("select coalesce(max(version), 0) from pgflow.schema_migrations")
            .fetch_one(&mut *connection)
            .await?;
    check_version(database, release.migration)?;
    let (protocol, environment): (i32, String) =
        sqlx::query_as("select protocol_version, environment from pgflow.installation")
            .fetch_one(connection)
            .await?;
    if protocol != release.protocol {
        return Err(NotReadyError::Protocol {
            database: protocol,
            code: release.protocol,
        });
    }
    Ok(Installed {
        version: database,
        environment,
    })
}

fn check_version(database: i32, code: i32) -> Result<(), NotReadyError> {
    match database.cmp(&code) {
        std::cmp::Ordering::Less => Err(NotReadyError::DatabaseOlder { database, code }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(NotReadyError::DatabaseNewer { database, code }),
    }
}
