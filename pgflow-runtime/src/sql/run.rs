//! Starts and reads runs.

use serde_json::value::RawValue;
use sqlx::{PgExecutor, Row, types::Json};
use uuid::Uuid;

use super::{CallError, RawJson};

/// Starts a run and returns its id; with the id of a run that exists, changes nothing.
///
/// # Errors
///
/// `PF001` for an unknown flow, `PF005` for an input that the flow does not take.
pub(crate) async fn start_flow(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
    input: &RawValue,
    run_id: Option<Uuid>,
) -> Result<Uuid, CallError> {
    Ok(sqlx::query_scalar(
        "select run_id from pgflow.start_flow(flow_slug => $1, input => $2, run_id => $3)",
    )
    .bind(flow_slug)
    .bind(Json(input))
    .bind(run_id)
    .fetch_one(executor)
    .await?)
}

/// Starts a run for each input, all or none, and returns their ids in the order of the inputs; with
/// the id of a run that exists, changes nothing.
///
/// `run_ids` has one for each input.
///
/// # Errors
///
/// As [`start_flow`]; `PF009` when another flow has one of the ids.
pub(crate) async fn start_flows(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
    inputs: &[Box<RawValue>],
    run_ids: Option<&[Uuid]>,
) -> Result<Vec<Uuid>, CallError> {
    let inputs: Vec<_> = inputs.iter().map(Json).collect();
    let expected = inputs.len();
    let started: Vec<Uuid> = sqlx::query_scalar(
        "select run_id from pgflow.start_flows(flow_slug => $1, inputs => $2, run_ids => $3)",
    )
    .bind(flow_slug)
    .bind(inputs)
    .bind(run_ids)
    .fetch_all(executor)
    .await?;
    if started.len() < expected {
        // One of the ids was that of a run that was being removed. Without its row, ids would be
        // taken for those of other inputs.
        return Err(sqlx::Error::RowNotFound.into());
    }
    Ok(started)
}

/// The part of a run that a waiter for its end needs.
#[derive(Debug)]
pub(crate) struct RunEnd {
    pub(crate) flow_slug: String,
    pub(crate) status: String,
    /// Only of a completed run.
    pub(crate) output: Option<Box<RawValue>>,
    pub(crate) error_message: Option<String>,
    /// The culprit of a failed run.
    pub(crate) failed_step: Option<String>,
}

/// Reads whether and how a run ended; None for an unknown run.
pub(crate) async fn read_end(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Option<RunEnd>, CallError> {
    // The case expressions keep a waiting caller from reading outputs and steps at every look.
    let row = sqlx::query(
        "select r.flow_slug, r.status, r.error_message, \
                case when r.status = 'completed' then r.output end as output, \
                case when r.status = 'failed' then (select s.step_slug from pgflow.step_states s \
                     where s.run_id = r.run_id and s.status = 'failed' order by s.failed_at limit 1) end as failed_step \
         from pgflow.runs r where r.run_id = $1",
    )
    .bind(run_id)
    .fetch_optional(executor)
    .await?;
    row.map(|row| {
        Ok(RunEnd {
            flow_slug: row.try_get("flow_slug")?,
            status: row.try_get("status")?,
            output: row
                .try_get::<Option<RawJson>, _>("output")?
                .map(|json| json.0),
            error_message: row.try_get("error_message")?,
            failed_step: row.try_get("failed_step")?,
        })
    })
    .transpose()
}

/// Reads a run and its step states as one JSON value; None for an unknown run.
pub(crate) async fn get_run_with_states(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Option<Box<RawValue>>, CallError> {
    let json: Option<RawJson> =
        sqlx::query_scalar("select pgflow.get_run_with_states(run_id => $1)")
            .bind(run_id)
            .fetch_one(executor)
            .await?;
    Ok(json.map(|json| json.0))
}

/// Reads the input that a run was started with; None for an unknown run.
pub(crate) async fn read_input(
    executor: impl PgExecutor<'_>,
    run_id: Uuid,
) -> Result<Option<Box<RawValue>>, CallError> {
    let json: Option<RawJson> =
        sqlx::query_scalar("select input from pgflow.runs where run_id = $1")
            .bind(run_id)
            .fetch_optional(executor)
            .await?;
    Ok(json.map(|json| json.0))
}
