//! Reports a missing privilege before a statement fails for lack of it.

use sqlx::PgConnection;

use super::error::MigrateError;
use super::unnamed;

#[derive(sqlx::FromRow)]
struct Privilege {
    may_create: bool,
    role: String,
    database: String,
    grant: String,
}

/// The role must be allowed to create schemas; even `create schema if not exists` fails for one
/// that is not.
pub(super) async fn require_create(
    connection: &mut PgConnection,
    schema: &'static str,
) -> Result<(), MigrateError> {
    let found: Privilege = unnamed::query_as(
        "select
             pg_catalog.has_database_privilege(current_database(), 'create') as may_create,
             current_user::text as role,
             current_database()::text as database,
             pg_catalog.format('grant create on database %I to %I', current_database(), current_user) as grant",
    )
    .fetch_one(connection)
    .await
    .map_err(MigrateError::doing("looking up privileges"))?;
    if found.may_create {
        return Ok(());
    }
    Err(MigrateError::CreateNotPermitted {
        schema,
        role: found.role,
        database: found.database,
        grant: found.grant,
    })
}
