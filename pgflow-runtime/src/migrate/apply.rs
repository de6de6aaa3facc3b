//! The transaction that brings a database up to date.

use std::time::Duration;

use pgflow_migrations::{Migration, PROTOCOL_VERSION};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, Transaction};

use super::{
    error::MigrateError,
    functions,
    history::{self, History},
    lock, pgmq, plan, privilege, public_rights,
    report::{AppliedMigration, MigrateReport},
    session,
    source::{Source, digest},
    unnamed,
};

/// Creates the schema and the two tables of the bookkeeping.
pub(super) const BOOKKEEPING: &str = include_str!("sql/bookkeeping.sql");
/// Keeps calls of old functions from failing.
pub(super) const NAME_COLUMNS: &str = include_str!("sql/name_columns.sql");
/// Refuses a role that can't create queues.
pub(super) const PGMQ_RIGHTS: &str = include_str!("sql/pgmq_may_create.sql");
/// Notes who may call which function.
pub(super) const GRANTS_BEFORE: &str = include_str!("sql/grants_before.sql");
/// Grants again what was lost because a function was dropped and created again.
pub(super) const GRANTS_AFTER: &str = include_str!("sql/grants_after.sql");

pub(super) async fn run(
    pool: &PgPool,
    source: &Source,
    lock_wait: Duration,
) -> Result<MigrateReport, MigrateError> {
    let mut connection = session::connect(pool).await?;
    session::require_server_version(&mut connection).await?;
    let mut attempt = 1;
    let report = loop {
        match run_once(&mut connection, pool, source, lock_wait).await {
            // Whatever it deadlocked with continues now.
            Err(error) if attempt < ATTEMPTS && error.is_deadlock() => {
                tracing::info!(
                    attempt,
                    "the migration was chosen to end a deadlock, trying again"
                );
                attempt += 1;
            }
            result => break result?,
        }
    };
    connection
        .close()
        .await
        .map_err(MigrateError::doing("closing the connection"))?;
    Ok(report)
}

/// The last level whose functions return whatever columns their tables have.
const LAST_WITHOUT_NAMES: i32 = 7;
/// The time for calls that began before to end, or to lock the tables that the migration locks
/// after them.
const CALLS_END_WITHIN: Duration = Duration::from_millis(300);

/// Keeps calls that are in flight from failing when tables gain columns; ends the transaction.
async fn name_columns(mut transaction: Transaction<'_, Postgres>) -> Result<(), MigrateError> {
    let doing = MigrateError::doing("naming the columns that functions return");
    sqlx::raw_sql(NAME_COLUMNS)
        .execute(&mut *transaction)
        .await
        .map_err(doing)?;
    transaction
        .commit()
        .await
        .map_err(MigrateError::doing("committing"))?;
    tokio::time::sleep(CALLS_END_WITHIN).await;
    Ok(())
}

/// The number of times that a migration begins again after a deadlock.
const ATTEMPTS: u32 = 5;

async fn run_once(
    connection: &mut PgConnection,
    pool: &PgPool,
    source: &Source,
    lock_wait: Duration,
) -> Result<MigrateReport, MigrateError> {
    let (mut transaction, mut history) = begin(connection, lock_wait).await?;
    // Not for a database that the migration would refuse.
    let is_pending = !plan::pending(source, &history)?.is_empty();
    if is_pending && (1..=LAST_WITHOUT_NAMES).contains(&history.level()) {
        name_columns(transaction).await?;
        (transaction, history) = begin(connection, lock_wait).await?;
    }
    let report = migrate(&mut transaction, pool, source, &history).await?;
    transaction
        .commit()
        .await
        .map_err(MigrateError::doing("committing"))?;
    Ok(report)
}

/// Begins a transaction that no other migrator's overlaps, and reads what was migrated before it.
async fn begin(
    connection: &mut PgConnection,
    lock_wait: Duration,
) -> Result<(Transaction<'_, Postgres>, History), MigrateError> {
    let mut transaction = session::begin(connection).await?;
    lock::acquire(&mut transaction, lock_wait).await?;
    let history = history::read(&mut transaction).await?;
    Ok((transaction, history))
}

async fn migrate(
    transaction: &mut PgConnection,
    pool: &PgPool,
    source: &Source,
    history: &History,
) -> Result<MigrateReport, MigrateError> {
    // Planned first: a database that must not be touched does not get PGMQ either.
    let pending = plan::pending(source, history)?;
    if !history.schema_exists {
        privilege::require_create(transaction, "pgflow").await?;
    }
    let (pgmq, installed_pgmq) = pgmq::ensure(transaction, pool).await?;
    if !history.exists {
        sqlx::raw_sql(BOOKKEEPING)
            .execute(&mut *transaction)
            .await
            .map_err(MigrateError::doing("creating the bookkeeping tables"))?;
    }

    let mut report = MigrateReport {
        from_version: history.level(),
        to_version: history.level(),
        migrations: Vec::new(),
        functions: Vec::new(),
        dropped_functions: Vec::new(),
        warnings: pgmq::warnings(&pgmq),
        pgmq,
        installed_pgmq,
        protocol_version: None,
        closed: Vec::new(),
        missing_grants: Vec::new(),
    };
    sqlx::raw_sql(GRANTS_BEFORE)
        .execute(&mut *transaction)
        .await
        .map_err(MigrateError::doing("reading who may call functions"))?;
    if let [first, ..] = pending.as_slice() {
        lock_tables(transaction, first).await?;
    }
    for migration in pending {
        apply(transaction, migration).await?;
        report.to_version = migration.version;
        report.migrations.push(AppliedMigration {
            version: migration.version,
            name: migration.name.to_owned(),
        });
    }
    if let Some(wanted) = source.wanted_functions() {
        let changes =
            functions::bring_up_to_date(transaction, wanted, &history.functions, source.latest())
                .await?;
        sqlx::raw_sql(GRANTS_AFTER)
            .execute(&mut *transaction)
            .await
            .map_err(MigrateError::doing("granting functions again"))?;
        report.functions = changes.applied;
        report.dropped_functions = changes.dropped;
        report.protocol_version = set_protocol_version(transaction).await?;
    }
    // Each time: a restored dump without rights, or a careless grant, opens what was closed.
    report.closed = public_rights::close(transaction).await?;
    // After the schema exists: its owner is whose rights count.
    report.missing_grants = pgmq::missing_grants(transaction).await?;
    Ok(report)
}

/// Locks the tables that there are, for the first file to apply and those after it.
async fn lock_tables(
    transaction: &mut PgConnection,
    first: &Migration,
) -> Result<(), MigrateError> {
    sqlx::raw_sql(AssertSqlSafe(locking(first.version)))
        .execute(transaction)
        .await
        .map_err(|source| {
            let what = format!("migration {:04}_{}", first.version, first.name);
            MigrateError::changing(what, source, |source| MigrateError::Database {
                doing: "locking the tables",
                source,
            })
        })?;
    Ok(())
}

/// The statement that locks all tables, unless the database is at this level already.
pub(super) fn locking(level: i32) -> String {
    include_str!("sql/lock_tables.sql")
        .replace("{level}", &level.to_string())
        .replace(
            "{table_lock_wait}",
            &session::TABLE_LOCK_WAIT.as_secs().to_string(),
        )
}

async fn apply(
    transaction: &mut PgConnection,
    migration: &'static Migration,
) -> Result<(), MigrateError> {
    let Migration { version, name, sql } = *migration;
    tracing::info!(version, name, "applying migration");
    sqlx::raw_sql(sql)
        .execute(&mut *transaction)
        .await
        .map_err(|source| {
            let what = format!("migration {version:04}_{name}");
            MigrateError::changing(what, source, |source| MigrateError::Migration {
                version,
                name,
                line: line_of(&source, sql),
                source,
            })
        })?;
    unnamed::query(
        "insert into pgflow.schema_migrations (version, name, digest) values ($1, $2, $3)",
    )
    .bind(version)
    .bind(name)
    .bind(digest(sql))
    .execute(transaction)
    .await
    .map_err(MigrateError::doing("recording a migration"))?;
    Ok(())
}

/// Sets it where it differs; says what it is now set to.
async fn set_protocol_version(transaction: &mut PgConnection) -> Result<Option<i32>, MigrateError> {
    unnamed::query_scalar(
        "update pgflow.installation set protocol_version = $1
         where protocol_version is distinct from $1
         returning protocol_version",
    )
    .bind(PROTOCOL_VERSION)
    .fetch_optional(transaction)
    .await
    .map_err(MigrateError::doing("setting the protocol version"))
}

/// The line of a file that an error of the database points at.
pub(super) fn line_of(error: &sqlx::Error, sql: &str) -> Option<usize> {
    use sqlx::postgres::{PgDatabaseError, PgErrorPosition};

    let error = error
        .as_database_error()?
        .try_downcast_ref::<PgDatabaseError>()?;
    let PgErrorPosition::Original(position) = error.position()? else {
        return None;
    };
    // Positions count characters from 1.
    let before = sql.chars().take(position.saturating_sub(1));
    Some(before.filter(|character| *character == '\n').count() + 1)
}
