use std::fmt;

use serde::Serialize;

use super::pgmq::PgmqState;
use crate::printable::printable;

/// The changes of a migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MigrateReport {
    /// The newest migration before; 0 for a blank database.
    pub from_version: i32,
    /// The newest migration now.
    pub to_version: i32,
    /// The migrations that were applied.
    pub migrations: Vec<AppliedMigration>,
    /// The functions that were created or replaced.
    pub functions: Vec<String>,
    /// The signatures of functions that were dropped.
    pub dropped_functions: Vec<String>,
    /// The parts of PGMQ that the database has.
    pub pgmq: PgmqState,
    /// `true` if PGMQ was installed now.
    pub installed_pgmq: bool,
    /// The protocol version that was set, when it was another one before.
    pub protocol_version: Option<i32>,
    /// The objects that were open to every role and are closed now, such as `function
    /// pgflow.start_flow(..)`; new functions are closed as well, and not listed.
    pub closed: Vec<String>,
    /// The statements that give the owner of the schema the rights on PGMQ that it lacks: until
    /// they are run as the owner of PGMQ, no worker starts.
    pub missing_grants: Vec<String>,
    /// The warnings for the operator, whether or not the migration changed anything.
    pub warnings: Vec<String>,
}

/// A numbered migration, by number and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AppliedMigration {
    /// Its number.
    pub version: i32,
    /// Its name.
    pub name: String,
}

impl fmt::Display for AppliedMigration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}_{}", self.version, self.name)
    }
}

impl MigrateReport {
    /// Returns whether nothing had to be done.
    pub fn is_unchanged(&self) -> bool {
        self.migrations.is_empty()
            && self.functions.is_empty()
            && self.dropped_functions.is_empty()
            && !self.installed_pgmq
            && self.protocol_version.is_none()
            && self.closed.is_empty()
    }
}

/// A few lines for people.
impl fmt::Display for MigrateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names of objects are those that somebody gave them.
        for warning in &self.warnings {
            writeln!(f, "warning: {}", printable(warning))?;
        }
        for grant in &self.missing_grants {
            writeln!(
                f,
                "warning: the owner of schema pgflow lacks a right on PGMQ, without which no worker starts; \
                 as the owner of PGMQ: {}",
                printable(grant)
            )?;
        }
        if self.is_unchanged() {
            return write!(f, "up to date at migration {}", self.to_version);
        }
        if self.installed_pgmq {
            writeln!(f, "installed PGMQ ({})", self.pgmq)?;
        }
        for migration in &self.migrations {
            writeln!(f, "applied {migration}")?;
        }
        if !self.functions.is_empty() {
            writeln!(f, "applied {} functions", self.functions.len())?;
        }
        for signature in &self.dropped_functions {
            writeln!(f, "dropped {}", printable(signature))?;
        }
        if let Some(version) = self.protocol_version {
            writeln!(f, "set the protocol version to {version}")?;
        }
        for object in &self.closed {
            writeln!(
                f,
                "revoked the rights of everybody on {}",
                printable(object)
            )?;
        }
        write!(f, "now at migration {}", self.to_version)
    }
}
