//! Brings the functions up to date: changed ones applied, superseded ones dropped, each name used
//! once.

use pgflow_migrations::Function;
use sqlx::{AssertSqlSafe, PgConnection};

use super::{
    apply::line_of,
    error::MigrateError,
    history::{LiveFunctions, RecordedFunction, live_functions},
    plan,
    source::digest,
    unnamed,
};

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) applied: Vec<String>,
    pub(super) dropped: Vec<String>,
}

pub(super) async fn bring_up_to_date(
    transaction: &mut PgConnection,
    functions: &'static [Function],
    recorded: &[RecordedFunction],
    level: i32,
) -> Result<Changes, MigrateError> {
    // Looked up after the numbered files: they may have dropped some.
    let before = live_functions(transaction).await?;
    let changed = plan::changed_functions(functions, recorded, &before);
    for function in &changed {
        apply(transaction, function).await?;
    }
    let mut done = Changes::default();
    let after = live_functions(transaction).await?;
    for superseded in plan::superseded(functions, recorded, &before, &after, level) {
        drop_function(transaction, &superseded.signature).await?;
        done.dropped.push(superseded.signature.clone());
    }
    for gone in plan::long_gone(functions, recorded, level) {
        forget(transaction, &gone.name).await?;
    }
    for gone in plan::newly_gone(functions, recorded) {
        mark_as_gone(transaction, &gone.name, level).await?;
    }
    let live = live_functions(transaction).await?;
    for function in functions {
        the_only_signature(&live, function.name)?;
    }
    for function in changed {
        let signature = the_only_signature(&live, function.name)?;
        close_to_public(transaction, signature).await?;
        record(transaction, function, signature).await?;
        done.applied.push(function.name.to_owned());
    }
    Ok(done)
}

async fn apply(
    transaction: &mut PgConnection,
    function: &'static Function,
) -> Result<(), MigrateError> {
    let Function { name, sql } = *function;
    tracing::debug!(name, "applying function");
    sqlx::raw_sql(sql)
        .execute(transaction)
        .await
        .map_err(|source| {
            let line = line_of(&source, sql);
            MigrateError::Function { name, line, source }
        })?;
    Ok(())
}

/// A new function may be called by everybody who may use its schema; ours are granted by name.
async fn close_to_public(
    transaction: &mut PgConnection,
    signature: &str,
) -> Result<(), MigrateError> {
    // The server's own spelling, as above.
    sqlx::raw_sql(AssertSqlSafe(format!(
        "revoke all on function {signature} from public"
    )))
    .execute(transaction)
    .await
    .map_err(MigrateError::doing("closing a function to the public"))?;
    Ok(())
}

async fn drop_function(
    transaction: &mut PgConnection,
    signature: &str,
) -> Result<(), MigrateError> {
    tracing::info!(signature, "dropping function");
    // The signature is the server's own spelling of a function that exists, quoted where it has to
    // be.
    sqlx::raw_sql(AssertSqlSafe(format!("drop function {signature}")))
        .execute(transaction)
        .await
        .map_err(|source| {
            let what = format!("dropping {signature}");
            MigrateError::changing(what, source, |source| MigrateError::Drop {
                signature: signature.to_owned(),
                source,
            })
        })?;
    Ok(())
}

fn the_only_signature<'a>(live: &'a LiveFunctions, name: &str) -> Result<&'a str, MigrateError> {
    match live.get(name).map_or(&[][..], Vec::as_slice) {
        [only] => Ok(only),
        found => Err(MigrateError::NotOneFunction {
            name: name.to_owned(),
            found: found.to_vec(),
        }),
    }
}

async fn record(
    transaction: &mut PgConnection,
    function: &Function,
    signature: &str,
) -> Result<(), MigrateError> {
    unnamed::query(
        "insert into pgflow.schema_functions (name, signature, digest) values ($1, $2, $3)
         on conflict (name) do update
         set signature = excluded.signature, digest = excluded.digest, applied_at = excluded.applied_at",
    )
    .bind(function.name)
    .bind(signature)
    .bind(digest(function.sql))
    .execute(transaction)
    .await
    .map_err(MigrateError::doing("recording a function"))?;
    Ok(())
}

async fn mark_as_gone(
    transaction: &mut PgConnection,
    name: &str,
    level: i32,
) -> Result<(), MigrateError> {
    tracing::info!(
        name,
        "keeping a function that is gone, for calls that have begun"
    );
    unnamed::query("update pgflow.schema_functions set digest = $2 where name = $1")
        .bind(name)
        .bind(plan::mark_of_gone(level))
        .execute(transaction)
        .await
        .map_err(MigrateError::doing("marking a function as gone"))?;
    Ok(())
}

async fn forget(transaction: &mut PgConnection, name: &str) -> Result<(), MigrateError> {
    unnamed::query("delete from pgflow.schema_functions where name = $1")
        .bind(name)
        .execute(transaction)
        .await
        .map_err(MigrateError::doing("forgetting a function"))?;
    Ok(())
}
