//! Recovers the tasks of dead workers.

use sqlx::{Connection, PgConnection, PgExecutor};

use super::CallError;

/// The outcome of one batch of recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Recovered {
    /// The number of tasks that were queued again.
    pub(crate) requeued: i32,
    /// The number of tasks that had no attempt left.
    pub(crate) ended: i32,
    /// Another call would find more that is due.
    pub(crate) more: bool,
}

/// Recovers one batch. The database lets one session at a time do this; the others get an empty
/// batch. `trust_silence`: treats silent workers as dead, although no other heartbeat shows that
/// the database could be reached.
pub(crate) async fn recover_tasks(
    connection: &mut PgConnection,
    trust_silence: bool,
) -> Result<Recovered, CallError> {
    let mut transaction = connection.begin().await?;
    // A batch that is cut off would be the first of the next call again.
    sqlx::query("select pg_catalog.set_config('statement_timeout', '0', true)")
        .execute(&mut *transaction)
        .await?;
    let recovered = sqlx::query_as(
        "select requeued, ended, more from pgflow.recover_tasks(trust_silence => $1)",
    )
    .bind(trust_silence)
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(recovered)
}

/// Returns whether recovery has something to look at.
pub(crate) async fn recovery_is_due(executor: impl PgExecutor<'_>) -> Result<bool, CallError> {
    Ok(sqlx::query_scalar("select pgflow.recovery_is_due()")
        .fetch_one(executor)
        .await?)
}
