//! Asks why steps are not running.

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

/// The same for each step of a run, at one moment, in the order of the definition. Empty for an
/// unknown run.
pub(crate) async fn explain_run<T>(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Vec<T>, CallError>
where
    T: DeserializeOwned + Send + Unpin + 'static,
{
    let answers: Vec<Json<T>> = sqlx::query_scalar(
        "select pgflow.explain_step(run_id => state.run_id, step_slug => state.step_slug) \
         from pgflow.step_states state \
         join pgflow.steps step on step.flow_slug = state.flow_slug and step.step_slug = state.step_slug \
         where state.run_id = $1 \
         order by step.step_index",
    )
    .bind(run_id)
    .fetch_all(executor)
    .await?;
    Ok(answers.into_iter().map(|Json(answer)| answer).collect())
}
