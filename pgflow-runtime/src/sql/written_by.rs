//! The build of the application that wrote a stored value.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::CallError;
use crate::flow::Source;

/// Returns the build of the workers whose tasks returned the value; none where one of them is not
/// known, or they differ.
pub(crate) async fn written_by(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
    source: &Source,
) -> Result<Option<String>, CallError> {
    // A step without a list has one task, whatever part of its output is meant.
    let build: Option<Option<String>> = sqlx::query_scalar(
        "select min(w.build) \
         from pgflow.step_tasks t \
         join pgflow.steps d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug \
         left join pgflow.workers w on w.worker_id = t.last_worker_id \
         where t.run_id = $1 and t.step_slug = $2 and (d.step_type <> 'map' or $3::int is null or t.task_index = $3) \
         having count(*) = count(w.build) and count(distinct w.build) = 1",
    )
    .bind(run_id)
    .bind(&source.step)
    .bind(source.element)
    .fetch_optional(executor)
    .await?;
    Ok(build.flatten())
}
