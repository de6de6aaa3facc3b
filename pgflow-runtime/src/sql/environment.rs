//! The environment of a database: production or a developer's own.

use sqlx::PgExecutor;

use super::CallError;

/// Marks the database as a developer's own, whose definitions may be replaced.
///
/// # Errors
///
/// When the database is not migrated.
pub(crate) async fn mark_local(executor: impl PgExecutor<'_>) -> Result<(), CallError> {
    sqlx::query("select pgflow.set_environment(environment => 'local')")
        .execute(executor)
        .await?;
    Ok(())
}
