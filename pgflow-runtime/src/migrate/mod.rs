//! Brings a database up to date: PGMQ, the tables and functions of schema `pgflow`, and the record
//! of what was applied.
//!
//! ```no_run
//! # async fn example(pool: sqlx::PgPool) -> Result<(), pgflow_runtime::migrate::MigrateError> {
//! let report = pgflow_runtime::migrate::migrate(&pool).await?;
//! println!("{report}");
//! # Ok(()) }
//! ```
//!
//! A migration is one transaction under one advisory lock. It may be called by any number of
//! processes at once, and calling it again changes nothing. The connections that it opens use the
//! pool's connect options; what the pool's `after_connect` sets does not apply to them.

mod apply;
mod error;
mod functions;
mod history;
mod installed;
mod lock;
mod pgmq;
mod plan;
mod privilege;
mod public_rights;
mod report;
mod script;
mod session;
mod source;
mod status;
mod unnamed;

use std::time::Duration;

use pgflow_migrations::{Function, Migration};
use sqlx::PgPool;

pub use error::MigrateError;
pub use installed::{Installed, NotReadyError, check_installed};
#[doc(hidden)]
pub use installed::{Release, check_installed_for};
pub use pgmq::PgmqState;
pub use report::{AppliedMigration, MigrateReport};
use source::Source;
pub use status::{Installation, RecordedState, RecordedStatus, Status};

/// Brings the pool's database up to date.
pub async fn migrate(pool: &PgPool) -> Result<MigrateReport, MigrateError> {
    Migrator::new().run(pool).await
}

/// Compares the pool's database with the contents of this program. Changes nothing.
pub async fn status(pool: &PgPool) -> Result<Status, MigrateError> {
    Migrator::new().status(pool).await
}

/// The migration as one SQL script, for people who apply it manually.
///
/// It is one transaction under the same lock, applies only what is missing, and may be applied
/// again. PGMQ has to be there.
pub fn script() -> String {
    Migrator::new().script()
}

/// A migration with other than the usual settings.
#[derive(Debug, Clone, Copy)]
pub struct Migrator {
    source: Source,
    lock_wait: Duration,
}

impl Migrator {
    /// Everything that this program contains; waits up to 60 s for another migrator.
    pub const fn new() -> Self {
        Self {
            source: Source::EMBEDDED,
            lock_wait: lock::WAIT,
        }
    }

    /// Sets the longest wait for another migrator.
    pub fn lock_wait(self, lock_wait: Duration) -> Self {
        Self { lock_wait, ..self }
    }

    /// For tests of upgrades: stops at the tables of an older level. Functions are applied at the
    /// latest level only.
    #[doc(hidden)]
    pub const fn up_to(mut self, version: i32) -> Self {
        self.source.level = Some(version);
        self
    }

    /// For tests of the migrator itself: other files than the embedded ones.
    #[doc(hidden)]
    pub const fn with_files(
        mut self,
        migrations: &'static [Migration],
        functions: &'static [Function],
    ) -> Self {
        self.source.migrations = migrations;
        self.source.functions = functions;
        self
    }

    /// Brings the pool's database up to date, as [`migrate`] does.
    pub async fn run(&self, pool: &PgPool) -> Result<MigrateReport, MigrateError> {
        apply::run(pool, &self.source, self.lock_wait).await
    }

    /// Compares the pool's database with the program, as [`status`] does.
    pub async fn status(&self, pool: &PgPool) -> Result<Status, MigrateError> {
        status::read(pool, &self.source).await
    }

    /// The SQL script, as [`script`] writes it.
    pub fn script(&self) -> String {
        script::write(&self.source)
    }
}

impl Default for Migrator {
    fn default() -> Self {
        Self::new()
    }
}
