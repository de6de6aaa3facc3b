//! Records outputs.

use serde_json::value::RawValue;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::CallError;

/// The task and the attempt of a report; the database ignores all attempts except the current one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AttemptKey {
    pub(crate) run_id: Uuid,
    pub(crate) step_slug: &'static str,
    pub(crate) task_index: i32,
    pub(crate) attempt: i32,
}

/// The result of one item of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completed {
    /// The item's position in the batch, from 0.
    pub(crate) item: usize,
    pub(crate) outcome: CompletionOutcome,
    /// `true` if this made tasks of other steps ready.
    pub(crate) made_ready: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionOutcome {
    Completed,
    /// The output is not what a dependent step needs; the run has failed.
    Failed,
    /// The attempt is no longer the current one; nothing was changed.
    Stale,
}

/// Records the outputs of all items, in one transaction of the database.
///
/// # Errors
///
/// `PF002` and `PF003` when one of them is unknown; a class 22 error when one of the outputs can't
/// be stored. Nothing is recorded then.
pub(crate) async fn complete_tasks(
    executor: impl PgExecutor<'_>,
    items: &[(&AttemptKey, &RawValue)],
) -> Result<Vec<Completed>, CallError> {
    let mut run_ids = Vec::with_capacity(items.len());
    let mut step_slugs = Vec::with_capacity(items.len());
    let mut task_indexes = Vec::with_capacity(items.len());
    let mut attempts = Vec::with_capacity(items.len());
    let mut outputs = Vec::with_capacity(items.len());
    for (key, output) in items {
        run_ids.push(key.run_id);
        step_slugs.push(key.step_slug);
        task_indexes.push(key.task_index);
        attempts.push(key.attempt);
        outputs.push(Json(output));
    }
    let rows: Vec<(i32, String, bool)> = sqlx::query_as(
        "select item, outcome, made_ready from pgflow.complete_tasks(run_ids => $1, step_slugs => $2, \
                task_indexes => $3, attempts => $4, outputs => $5)",
    )
    .bind(run_ids)
    .bind(step_slugs)
    .bind(task_indexes)
    .bind(attempts)
    .bind(outputs)
    .fetch_all(executor)
    .await?;
    rows.into_iter().map(completed).collect()
}

fn completed((item, outcome, made_ready): (i32, String, bool)) -> Result<Completed, CallError> {
    let outcome = match outcome.as_str() {
        "completed" => CompletionOutcome::Completed,
        "failed" => CompletionOutcome::Failed,
        "stale" => CompletionOutcome::Stale,
        other => return Err(unexpected(&format!("outcome `{other}` of complete_tasks"))),
    };
    let item = usize::try_from(item - 1)
        .map_err(|_| unexpected(&format!("item {item} of complete_tasks")))?;
    Ok(Completed {
        item,
        outcome,
        made_ready,
    })
}

fn unexpected(what: &str) -> CallError {
    CallError::Database(sqlx::Error::Decode(
        format!("{what} is unknown to this version of pgflow; use the version that migrated the database").into(),
    ))
}
