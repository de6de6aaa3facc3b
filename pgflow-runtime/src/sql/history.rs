//! Reads how far a run and its steps have come.

use serde_json::value::RawValue;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{CallError, RawJson};

/// Reads what `get_run_with_states` does, without input and outputs and with the steps in any
/// order; None for an unknown run.
///
/// One statement, so that run and steps are seen at one moment. It needs no more rights than
/// waiting does.
pub(crate) async fn read_history(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Option<Box<RawValue>>, CallError> {
    // Columns by name: whoever follows a run reads this at each look, and a whole row has outputs
    // of any size.
    let json: Option<RawJson> = sqlx::query_scalar(
        "select json_build_object( \
             'run', json_build_object( \
                 'run_id', r.run_id, 'flow_slug', r.flow_slug, 'status', r.status, 'error_message', r.error_message, \
                 'remaining_steps', r.remaining_steps, 'started_at', r.started_at, 'completed_at', r.completed_at, \
                 'failed_at', r.failed_at), \
             'steps', coalesce(( \
                 select json_agg(json_build_object( \
                     'step_slug', s.step_slug, 'status', s.status, 'initial_tasks', s.initial_tasks, \
                     'remaining_tasks', s.remaining_tasks, 'failed_tasks', s.failed_tasks, 'remaining_deps', s.remaining_deps, \
                     'error_message', s.error_message, 'skip_reason', s.skip_reason, 'created_at', s.created_at, \
                     'started_at', s.started_at, 'completed_at', s.completed_at, 'failed_at', s.failed_at, \
                     'skipped_at', s.skipped_at)) \
                 from pgflow.step_states s where s.run_id = r.run_id), '[]')) \
         from pgflow.runs r where r.run_id = $1",
    )
    .bind(run_id)
    .fetch_optional(executor)
    .await?;
    Ok(json.map(|json| json.0))
}
