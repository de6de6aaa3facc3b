use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{PgConnection, PgPool};

use super::{
    error::MigrateError,
    history, pgmq,
    pgmq::PgmqState,
    plan, public_rights,
    report::AppliedMigration,
    session,
    source::{Source, digest},
    unnamed,
};

/// The parts of pgflow in a database, compared with the contents of this program.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The version of Postgres.
    pub server_version: String,
    /// The parts of PGMQ that the database has.
    pub pgmq: PgmqState,
    /// The migrations that the database records, in order.
    pub applied: Vec<RecordedStatus>,
    /// The migrations that `migrate` would apply.
    pub pending: Vec<AppliedMigration>,
    /// The functions that `migrate` would apply: their text differs, or they are not there.
    pub changed_functions: Vec<String>,
    /// The recorded functions that this program no longer contains.
    pub gone_functions: Vec<String>,
    /// The record of the installation; absent before the first migration.
    pub installation: Option<Installation>,
    /// The objects on which every role has a right, such as `function pgflow.start_flow(..)`:
    /// restoring a dump without rights opens every function. `migrate` revokes it.
    pub open_to_everybody: Vec<String>,
    /// The statements that give the owner of the schema the rights on PGMQ that it lacks.
    pub missing_grants: Vec<String>,
    /// The warnings for the operator.
    pub warnings: Vec<String>,
    /// The newest migration that this program contains.
    pub code_version: i32,
    /// The protocol that this program speaks.
    pub code_protocol_version: i32,
}

/// One recorded migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecordedStatus {
    /// Its number.
    pub version: i32,
    /// Its name.
    pub name: String,
    /// The time at which it was applied.
    pub applied_at: DateTime<Utc>,
    /// The result of the comparison with the file that this program contains.
    pub state: RecordedState,
}

/// The result of comparing a recorded migration with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecordedState {
    /// The same file.
    Applied,
    /// The file was edited after it was applied.
    Edited,
    /// The program does not know it: the database is newer.
    Unknown,
}

/// The row of `pgflow.installation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[non_exhaustive]
pub struct Installation {
    /// `production` or `local`.
    pub environment: String,
    /// The protocol of the functions.
    pub protocol_version: i32,
}

impl Status {
    /// Returns whether `migrate` would change nothing, and workers can start.
    pub fn is_current(&self) -> bool {
        let fits = |recorded: &RecordedStatus| recorded.state == RecordedState::Applied;
        let protocol = self.installation.as_ref().map(|row| row.protocol_version);
        self.pending.is_empty()
            && self.changed_functions.is_empty()
            && self.gone_functions.is_empty()
            && self.open_to_everybody.is_empty()
            && self.missing_grants.is_empty()
            && self.applied.iter().all(fits)
            && protocol == Some(self.code_protocol_version)
    }
}

pub(super) async fn read(pool: &PgPool, source: &Source) -> Result<Status, MigrateError> {
    let mut connection = session::connect(pool).await?;
    let server_version = unnamed::query_scalar("select current_setting('server_version')")
        .fetch_one(&mut connection)
        .await
        .map_err(MigrateError::doing("asking for the server's version"))?;
    // Dropped without a commit: nothing was written.
    let mut transaction = session::begin_reading(&mut connection).await?;
    let pgmq = pgmq::probe(&mut transaction).await?;
    let history = history::read(&mut transaction).await?;
    let live = history::live_functions(&mut transaction).await?;
    let installation = if history.exists {
        installation(&mut transaction).await?
    } else {
        None
    };

    let open_to_everybody = if history.exists {
        public_rights::list(&mut transaction).await?
    } else {
        Vec::new()
    };
    let missing_grants = match &pgmq {
        PgmqState::Absent => Vec::new(),
        _ => pgmq::missing_grants(&mut transaction).await?,
    };

    let applied = history.migrations.iter().map(|recorded| {
        let known = source
            .migrations
            .iter()
            .find(|known| known.version == recorded.version);
        RecordedStatus {
            version: recorded.version,
            name: recorded.name.clone(),
            applied_at: recorded.applied_at,
            state: match known {
                None => RecordedState::Unknown,
                Some(known) if digest(known.sql) == recorded.digest => RecordedState::Applied,
                Some(_) => RecordedState::Edited,
            },
        }
    });
    let pending = source.migrations.iter().filter(|known| {
        !history
            .migrations
            .iter()
            .any(|recorded| recorded.version == known.version)
    });
    let changed = plan::changed_functions(source.functions, &history.functions, &live);
    let gone = plan::long_gone(source.functions, &history.functions, source.latest());
    Ok(Status {
        server_version,
        warnings: pgmq::warnings(&pgmq),
        pgmq,
        open_to_everybody,
        missing_grants,
        applied: applied.collect(),
        pending: pending
            .map(|migration| AppliedMigration {
                version: migration.version,
                name: migration.name.to_owned(),
            })
            .collect(),
        changed_functions: changed
            .iter()
            .map(|function| function.name.to_owned())
            .collect(),
        gone_functions: gone
            .iter()
            .map(|recorded| recorded.signature.clone())
            .collect(),
        installation,
        code_version: source.latest(),
        code_protocol_version: pgflow_migrations::PROTOCOL_VERSION,
    })
}

async fn installation(connection: &mut PgConnection) -> Result<Option<Installation>, MigrateError> {
    let doing = MigrateError::doing("reading the installation");
    let exists: bool =
        unnamed::query_scalar("select pg_catalog.to_regclass('pgflow.installation') is not null")
            .fetch_one(&mut *connection)
            .await
            .map_err(&doing)?;
    if !exists {
        return Ok(None);
    }
    unnamed::query_as("select environment, protocol_version from pgflow.installation")
        .fetch_optional(connection)
        .await
        .map_err(&doing)
}
