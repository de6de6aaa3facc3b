//! The database's record of earlier migrations, and its functions.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::error::MigrateError;
use super::unnamed;

/// The bookkeeping as found; empty before the first migration.
#[derive(Debug, Default)]
pub(super) struct History {
    /// `true` if the bookkeeping tables exist.
    pub(super) exists: bool,
    /// `true` if schema `pgflow` exists.
    pub(super) schema_exists: bool,
    pub(super) migrations: Vec<RecordedMigration>,
    pub(super) functions: Vec<RecordedFunction>,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct RecordedMigration {
    pub(super) version: i32,
    pub(super) name: String,
    pub(super) digest: String,
    pub(super) applied_at: DateTime<Utc>,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct RecordedFunction {
    pub(super) name: String,
    pub(super) signature: String,
    pub(super) digest: String,
}

impl History {
    /// The newest recorded migration; 0 without any.
    pub(super) fn level(&self) -> i32 {
        self.migrations.last().map_or(0, |newest| newest.version)
    }
}

#[derive(sqlx::FromRow)]
struct State {
    schema_exists: bool,
    recorded: bool,
    foreign_object: Option<String>,
}

/// Reads the bookkeeping, and refuses a schema `pgflow` that something else made.
pub(super) async fn read(connection: &mut PgConnection) -> Result<History, MigrateError> {
    let doing = MigrateError::doing("reading the recorded migrations");
    let state: State = unnamed::query_as(include_str!("sql/schema_state.sql"))
        .fetch_one(&mut *connection)
        .await
        .map_err(&doing)?;
    if !state.recorded {
        return match state.foreign_object {
            Some(found) => Err(MigrateError::ForeignSchema { found }),
            None => Ok(History {
                schema_exists: state.schema_exists,
                ..History::default()
            }),
        };
    }
    let migrations = unnamed::query_as(
        "select version, name, digest, applied_at from pgflow.schema_migrations order by version",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(&doing)?;
    let functions = unnamed::query_as(
        "select name, signature, digest from pgflow.schema_functions order by name",
    )
    .fetch_all(connection)
    .await
    .map_err(&doing)?;
    Ok(History {
        exists: true,
        schema_exists: true,
        migrations,
        functions,
    })
}

/// The signatures of the functions in schema `pgflow`, by name. Needs `search_path = ''`, so that
/// they are qualified.
pub(super) type LiveFunctions = BTreeMap<String, Vec<String>>;

pub(super) async fn live_functions(
    connection: &mut PgConnection,
) -> Result<LiveFunctions, MigrateError> {
    let rows: Vec<(String, String)> = unnamed::query_as(include_str!("sql/live_functions.sql"))
        .fetch_all(connection)
        .await
        .map_err(MigrateError::doing("listing functions"))?;
    let mut live = LiveFunctions::new();
    for (name, signature) in rows {
        live.entry(name).or_default().push(signature);
    }
    Ok(live)
}
