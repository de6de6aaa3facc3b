//! The rights of `PUBLIC` in schema `pgflow`: it has none that were not granted by name.

use sqlx::{AssertSqlSafe, PgConnection};

use super::error::MigrateError;
use super::unnamed;

/// Lists what is open to everybody.
pub(super) const QUERY: &str = include_str!("sql/public_rights.sql");

/// Something of schema `pgflow` that everybody has a right on.
#[derive(Debug, sqlx::FromRow)]
struct Open {
    /// Such as `function pgflow.start_flow(text,jsonb,uuid)`.
    object: String,
    /// `true` if the connected role has its owner's rights.
    is_own: bool,
}

async fn read(connection: &mut PgConnection) -> Result<Vec<Open>, MigrateError> {
    unnamed::query_as(QUERY)
        .fetch_all(connection)
        .await
        .map_err(MigrateError::doing("looking for rights of everybody"))
}

/// The names of what is open to everybody.
pub(super) async fn list(connection: &mut PgConnection) -> Result<Vec<String>, MigrateError> {
    let open = read(connection).await?;
    Ok(open.into_iter().map(|open| open.object).collect())
}

/// Closes objects that are open to `PUBLIC`, and returns their names. An object of another owner is
/// unchanged: `status` shows it.
pub(super) async fn close(connection: &mut PgConnection) -> Result<Vec<String>, MigrateError> {
    let mut closed = Vec::new();
    for open in read(connection)
        .await?
        .into_iter()
        .filter(|open| open.is_own)
    {
        // The server's own spelling, quoted where it has to be. On a function, a grant to everybody
        // is the default: it needs an explicit end.
        let revoke = format!("revoke all on {} from public", open.object);
        sqlx::raw_sql(AssertSqlSafe(revoke))
            .execute(&mut *connection)
            .await
            .map_err(MigrateError::doing("closing an object to everybody"))?;
        closed.push(open.object);
    }
    Ok(closed)
}
