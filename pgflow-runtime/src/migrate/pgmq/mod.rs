//! PGMQ, the base of all queues: found, or installed. It is never upgraded, since other programs
//! may use it.

mod install;
mod probe;
mod rights;

use std::fmt;

use serde::Serialize;
use sqlx::{PgConnection, PgPool};

use super::error::MigrateError;
pub(super) use probe::{REQUIRED, probe};
pub(super) use rights::{missing_grants, warnings};

/// The parts of PGMQ that the database has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PgmqState {
    /// Nothing.
    Absent,
    /// The extension, with its version.
    Extension {
        /// As `pg_extension` records it.
        version: String,
    },
    /// Its SQL, installed without the extension.
    Sql {
        /// As its installer recorded it; absent when it was installed manually.
        version: Option<String>,
    },
    /// A schema `pgmq` that lacks something that pgflow calls.
    Incomplete {
        /// The missing parts.
        missing: Vec<String>,
    },
}

impl fmt::Display for PgmqState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not installed"),
            Self::Extension { version } => write!(f, "extension {version}"),
            Self::Sql {
                version: Some(version),
            } => write!(f, "SQL {version}"),
            Self::Sql { version: None } => f.write_str("SQL of unknown version"),
            Self::Incomplete { missing } => write!(f, "incomplete: {} missing", missing.join(", ")),
        }
    }
}

/// Makes sure that PGMQ is there; says whether it had to be installed.
pub(super) async fn ensure(
    transaction: &mut PgConnection,
    pool: &PgPool,
) -> Result<(PgmqState, bool), MigrateError> {
    match probe(transaction).await? {
        PgmqState::Absent => {
            install::install(transaction, pool).await?;
            match probe(transaction).await? {
                PgmqState::Absent => Err(MigrateError::PgmqIncomplete {
                    missing: REQUIRED.iter().map(ToString::to_string).collect(),
                }),
                PgmqState::Incomplete { missing } => Err(MigrateError::PgmqIncomplete { missing }),
                installed => Ok((installed, true)),
            }
        }
        PgmqState::Incomplete { missing } => Err(MigrateError::PgmqIncomplete { missing }),
        found => Ok((found, false)),
    }
}
