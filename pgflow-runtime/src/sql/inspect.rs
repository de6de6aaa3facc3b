//! Reads what people look at: lists of runs, and one run with its steps and counts of tasks.

use sqlx::{Connection, PgConnection, PgExecutor};
use uuid::Uuid;

use super::CallError;
use crate::inspect::{Route, RunDetails, RunFilter, RunSummary, StepDetails};

/// The newest runs first.
pub(crate) async fn list_runs(
    executor: impl PgExecutor<'_>,
    filter: &RunFilter,
) -> Result<Vec<RunSummary>, CallError> {
    Ok(sqlx::query_as(
        "select run_id, flow_slug, status, error_message, remaining_steps, started_at, \
                coalesce(completed_at, failed_at) as ended_at \
         from pgflow.runs \
         where ($1::text is null or status = $1) and ($2::text is null or flow_slug = $2) \
         order by started_at desc, run_id \
         limit $3",
    )
    .bind(&filter.status)
    .bind(&filter.flow_slug)
    .bind(i64::from(filter.limit))
    .fetch_all(executor)
    .await?)
}

/// One run and its steps as they were at one moment; None for an unknown run.
pub(crate) async fn read_run(
    connection: &mut PgConnection,
    run_id: Uuid,
) -> Result<Option<RunDetails>, CallError> {
    let mut transaction = connection
        .begin_with("begin transaction isolation level repeatable read, read only")
        .await?;
    let run: Option<RunDetails> = sqlx::query_as(
        "select run_id, flow_slug, status, error_message, remaining_steps, started_at, \
                coalesce(completed_at, failed_at) as ended_at, input, output \
         from pgflow.runs where run_id = $1",
    )
    .bind(run_id)
    .fetch_optional(&mut *transaction)
    .await?;
    let details = match run {
        None => None,
        Some(run) => Some(RunDetails {
            steps: read_steps(&mut transaction, run_id).await?,
            ..run
        }),
    };
    transaction.rollback().await?;
    Ok(details)
}

async fn read_steps(
    connection: &mut PgConnection,
    run_id: Uuid,
) -> Result<Vec<StepDetails>, CallError> {
    Ok(sqlx::query_as(
        "select step.step_index, state.step_slug, step.step_type, step.runs_on, state.status, state.skip_reason, state.error_message, \
                state.remaining_deps, state.initial_tasks, state.created_at, state.started_at, \
                coalesce(state.completed_at, state.failed_at, state.skipped_at) as ended_at, tasks.*, \
                case when (run.status = 'started' or step.runs_on is not null) and state.status in ('created', 'started') \
                     then pgflow.explain_step(run_id => state.run_id, step_slug => state.step_slug) end as explanation \
         from pgflow.step_states state \
         join pgflow.runs run on run.run_id = state.run_id \
         join pgflow.steps step on step.flow_slug = state.flow_slug and step.step_slug = state.step_slug \
         cross join lateral ( \
             select count(*) filter (where task.status = 'queued') as queued, \
                    count(*) filter (where task.status = 'started') as started, \
                    count(*) filter (where task.status = 'completed') as completed, \
                    count(*) filter (where task.status = 'failed') as failed, \
                    count(*) filter (where task.status = 'skipped') as skipped, \
                    count(*) filter (where task.status = 'cancelled') as cancelled \
             from pgflow.step_tasks task \
             where task.run_id = state.run_id and task.step_slug = state.step_slug \
         ) tasks \
         where state.run_id = $1 \
         order by step.step_index",
    )
    .bind(run_id)
    .fetch_all(connection)
    .await?)
}

/// In order.
pub(crate) async fn list_flows(executor: impl PgExecutor<'_>) -> Result<Vec<String>, CallError> {
    Ok(
        sqlx::query_scalar("select flow_slug from pgflow.flows order by flow_slug")
            .fetch_all(executor)
            .await?,
    )
}

/// Every queue of every flow, or of one; in the order of slugs and definitions.
pub(crate) async fn read_coverage(
    executor: impl PgExecutor<'_>,
    flow_slug: Option<&str>,
) -> Result<Vec<Route>, CallError> {
    Ok(sqlx::query_as(
        "select flow_slug, queue_mode, step_slug, queue_name, is_covered, live_workers, last_heartbeat_at, waiting_messages, oldest_waiting_at \
         from pgflow.coverage where $1::text is null or flow_slug = $1",
    )
    .bind(flow_slug)
    .fetch_all(executor)
    .await?)
}
