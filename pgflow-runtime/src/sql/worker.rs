//! The worker's own rows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::CallError;

/// The description of a worker in its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registration<'a> {
    pub(crate) worker_id: Uuid,
    pub(crate) function_name: &'a str,
    pub(crate) flow_slug: &'a str,
    /// None: every step of the flow.
    pub(crate) step_slug: Option<&'a str>,
    pub(crate) queue_name: &'a str,
    /// The steps whose tasks come with the flow's input.
    pub(crate) flow_input_steps: &'a [&'a str],
    /// The build of the application, if it has a name.
    pub(crate) build: Option<&'a str>,
}

/// The time at which a worker function was taken out of service, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disabled {
    pub(crate) since: Option<DateTime<Utc>>,
    pub(crate) reason: Option<String>,
    /// For a deployment, whose end lifts it.
    pub(crate) is_fenced: bool,
}

/// Checks whether the function is out of service; a function that is not tracked yet is not.
pub(crate) async fn disabled(
    executor: impl PgExecutor<'_>,
    function_name: &str,
) -> Result<Option<Disabled>, CallError> {
    let row: Option<(Option<DateTime<Utc>>, Option<String>, bool)> = sqlx::query_as(
        "select disabled_at, disabled_reason, fenced_at is not null from pgflow.worker_functions \
         where function_name = $1 and not enabled",
    )
    .bind(function_name)
    .fetch_optional(executor)
    .await?;
    Ok(row.map(|(since, reason, is_fenced)| Disabled {
        since,
        reason,
        is_fenced,
    }))
}

/// Makes the function known, so that it can be listed, fenced and enabled; the start mode is what
/// it has from now on.
pub(crate) async fn track_worker_function(
    executor: impl PgExecutor<'_>,
    function_name: &str,
    start_mode: &str,
) -> Result<(), CallError> {
    sqlx::query("select pgflow.track_worker_function(function_name => $1, start_mode => $2)")
        .bind(function_name)
        .bind(start_mode)
        .execute(executor)
        .await?;
    Ok(())
}

/// Has the worker that the same transaction registers get a flow's input once for each run of a
/// claim: [`claim_tasks`] shares it between tasks.
///
/// [`claim_tasks`]: super::claim::claim_tasks
pub(crate) async fn share_flow_input(executor: impl PgExecutor<'_>) -> Result<(), CallError> {
    // A setting, not a parameter: a changed signature would take the grants away from the workers'
    // roles.
    sqlx::query("select set_config('pgflow_worker.flow_input_once', 'on', true)")
        .execute(executor)
        .await?;
    Ok(())
}

/// Inserts the worker's row; its first heartbeat is now.
pub(crate) async fn register_worker(
    executor: impl PgExecutor<'_>,
    registration: &Registration<'_>,
) -> Result<(), CallError> {
    sqlx::query(
        "select pgflow.register_worker(worker_id => $1, function_name => $2, flow_slug => $3, step_slug => $4, \
                queue_name => $5, flow_input_steps => $6, build => $7)",
    )
    .bind(registration.worker_id)
    .bind(registration.function_name)
    .bind(registration.flow_slug)
    .bind(registration.step_slug)
    .bind(registration.queue_name)
    .bind(registration.flow_input_steps)
    .bind(registration.build)
    .execute(executor)
    .await?;
    Ok(())
}

/// Records the host and process of the worker, for an operator who wants to stop it.
pub(crate) async fn set_worker_process(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
    host: &str,
    pid: u32,
) -> Result<(), CallError> {
    sqlx::query("select pgflow.set_worker_process(worker_id => $1, host => $2, pid => $3)")
        .bind(worker_id)
        .bind(host)
        .bind(i64::from(pid))
        .execute(executor)
        .await?;
    Ok(())
}

/// Returns the time after its last heartbeat at which a worker is taken for dead.
pub(crate) async fn lost_after(executor: impl PgExecutor<'_>) -> Result<Duration, CallError> {
    let seconds: f64 = sqlx::query_scalar(
        "select extract(epoch from lost_after)::float8 from pgflow.installation",
    )
    .fetch_one(executor)
    .await?;
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Records that the worker was asked to stop, and still runs tasks.
pub(crate) async fn mark_worker_draining(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
) -> Result<(), CallError> {
    sqlx::query("select pgflow.mark_worker_draining(worker_id => $1)")
        .bind(worker_id)
        .execute(executor)
        .await?;
    Ok(())
}

/// Records that the worker has stopped and claims no more tasks.
pub(crate) async fn mark_worker_stopped(
    executor: impl PgExecutor<'_>,
    worker_id: Uuid,
) -> Result<(), CallError> {
    sqlx::query("select pgflow.mark_worker_stopped(worker_id => $1)")
        .bind(worker_id)
        .execute(executor)
        .await?;
    Ok(())
}

/// `production` or `local`.
pub(crate) async fn environment(executor: impl PgExecutor<'_>) -> Result<String, CallError> {
    Ok(
        sqlx::query_scalar("select environment from pgflow.installation")
            .fetch_one(executor)
            .await?,
    )
}
