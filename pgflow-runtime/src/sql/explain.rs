//! Asks why a step is not running.

use serde::de::DeserializeOwned;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::CallError;

/// The answer of the database, as whatever it is to be read as.
///
/// # Errors
///
/// `PF002` for an unknown run, `PF003` for a step that the run does not have.
pub(crate) async fn explain_step<T>(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
    step_slug: &str,
) -> Result<T, CallError>
where
    T: DeserializeOwned + Send + Unpin + 'static,
{
    let Json(answer): Json<T> =
        sqlx::query_scalar("select pgflow.explain_step(run_id => $1, step_slug => $2)")
            .bind(run_id)
            .bind(step_slug)
            .fetch_one(executor)
            .await?;
    Ok(answer)
}
