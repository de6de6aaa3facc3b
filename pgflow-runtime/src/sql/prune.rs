//! Removes what ended long ago.

use std::time::Duration;

use sqlx::{PgExecutor, postgres::types::PgInterval};

use super::CallError;
use crate::maintenance::Prunable;

/// Removes one batch; returns how many runs it held.
///
/// # Errors
///
/// `PF009` when `max_runs` is 0.
pub(crate) async fn prune_data_older_than(
    executor: impl PgExecutor<'_>,
    older_than: Duration,
    max_runs: u32,
) -> Result<u64, CallError> {
    let removed: i32 =
        sqlx::query_scalar("select pgflow.prune_data_older_than(retention => $1, max_runs => $2)")
            .bind(interval(older_than))
            .bind(i32::try_from(max_runs).unwrap_or(i32::MAX))
            .fetch_one(executor)
            .await?;
    Ok(removed.unsigned_abs().into())
}

/// Counts the runs that [`prune_data_older_than`] would remove, and their tasks.
pub(crate) async fn count_prunable(
    executor: impl PgExecutor<'_>,
    older_than: Duration,
) -> Result<Prunable, CallError> {
    // The condition is that of the function, so that they agree, and that of the index.
    Ok(sqlx::query_as(
        "select count(*) as runs, coalesce(sum(tasks.count), 0)::bigint as tasks \
         from pgflow.runs run \
         cross join lateral (select count(*) from pgflow.step_tasks task where task.run_id = run.run_id) tasks \
         where run.status <> 'started' \
           and coalesce(run.completed_at, run.failed_at) < now() - least($1, interval '1000 years') \
           and not (run.has_end_steps and exists ( \
               select from pgflow.steps step \
               join pgflow.step_states state on state.run_id = run.run_id and state.step_slug = step.step_slug \
               where step.flow_slug = run.flow_slug and step.runs_on is not null and state.status = 'started' \
           ))",
    )
    .bind(interval(older_than))
    .fetch_one(executor)
    .await?)
}

/// Only microseconds: a day is 24 hours in every time zone. A longer duration than fits is longer
/// than the age of any row.
fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}
