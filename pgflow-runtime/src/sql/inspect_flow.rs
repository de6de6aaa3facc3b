//! Reads a stored definition.

use std::collections::HashMap;

use pgflow_definition::{QueueMode, SkipMode, StepKind};
use serde_json::Value;
use sqlx::{Connection, PgConnection, Row, postgres::PgRow};

use super::CallError;
use crate::inspect_flow::{StoredFlow, StoredOptions, StoredStep};

/// A flow with its steps, as they are at one moment; None for an unknown slug.
pub(crate) async fn read_flow(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<Option<StoredFlow>, CallError> {
    let mut transaction = connection
        .begin_with("begin transaction isolation level repeatable read, read only")
        .await?;
    let row = sqlx::query(
        "select flow_slug, queue_mode, opt_max_attempts, opt_base_delay, opt_timeout, null::int as opt_start_delay, created_at \
         from pgflow.flows where flow_slug = $1",
    )
    .bind(flow_slug)
    .fetch_optional(&mut *transaction)
    .await?;
    let flow = match row {
        None => None,
        Some(row) => Some(flow(&row, read_steps(&mut transaction, flow_slug).await?)?),
    };
    transaction.rollback().await?;
    Ok(flow)
}

async fn read_steps(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<Vec<StoredStep>, CallError> {
    let dependencies: Vec<(String, String)> = sqlx::query_as(
        "select d.step_slug, d.dep_slug from pgflow.deps d \
         join pgflow.steps s on s.flow_slug = d.flow_slug and s.step_slug = d.dep_slug \
         where d.flow_slug = $1 order by s.step_index",
    )
    .bind(flow_slug)
    .fetch_all(&mut *connection)
    .await?;
    let mut depends_on: HashMap<String, Vec<String>> = HashMap::new();
    for (step, dependency) in dependencies {
        depends_on.entry(step).or_default().push(dependency);
    }
    let rows = sqlx::query(
        "select step_index, step_slug, step_type, queue_name, opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay, \
                required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted \
         from pgflow.steps where flow_slug = $1 order by step_index",
    )
    .bind(flow_slug)
    .fetch_all(&mut *connection)
    .await?;
    let steps = rows.iter().map(|row| step(row, &mut depends_on));
    Ok(steps.collect::<Result<_, _>>()?)
}

fn flow(row: &PgRow, steps: Vec<StoredStep>) -> Result<StoredFlow, sqlx::Error> {
    Ok(StoredFlow {
        flow_slug: row.try_get("flow_slug")?,
        queue_mode: word(
            row,
            "queue_mode",
            [QueueMode::Flow, QueueMode::Step],
            QueueMode::as_str,
        )?,
        options: options(row)?,
        created_at: row.try_get("created_at")?,
        steps,
    })
}

fn step(
    row: &PgRow,
    depends_on: &mut HashMap<String, Vec<String>>,
) -> Result<StoredStep, sqlx::Error> {
    const MODES: [SkipMode; 3] = [SkipMode::Fail, SkipMode::Skip, SkipMode::SkipCascade];
    let step_slug: String = row.try_get("step_slug")?;
    Ok(StoredStep {
        step_index: row.try_get("step_index")?,
        step_type: word(
            row,
            "step_type",
            [StepKind::Single, StepKind::Map],
            StepKind::as_str,
        )?,
        depends_on: depends_on.remove(&step_slug).unwrap_or_default(),
        step_slug,
        queue_name: row.try_get("queue_name")?,
        options: options(row)?,
        required_input_pattern: row.try_get::<Option<Value>, _>("required_input_pattern")?,
        forbidden_input_pattern: row.try_get::<Option<Value>, _>("forbidden_input_pattern")?,
        when_unmet: word(row, "when_unmet", MODES, SkipMode::as_str)?,
        when_exhausted: word(row, "when_exhausted", MODES, SkipMode::as_str)?,
    })
}

fn options(row: &PgRow) -> Result<StoredOptions, sqlx::Error> {
    Ok(StoredOptions {
        max_attempts: row.try_get("opt_max_attempts")?,
        base_delay: row.try_get("opt_base_delay")?,
        timeout: row.try_get("opt_timeout")?,
        start_delay: row.try_get("opt_start_delay")?,
    })
}

/// The value that a column's word stands for.
fn word<T: Copy, const N: usize>(
    row: &PgRow,
    column: &str,
    values: [T; N],
    as_str: fn(T) -> &'static str,
) -> Result<T, sqlx::Error> {
    let word: &str = row.try_get(column)?;
    let value = values.into_iter().find(|value| as_str(*value) == word);
    value.ok_or_else(|| {
        sqlx::Error::Decode(
            format!("{column} `{word}` is unknown to this version of pgflow; use the version that migrated the database").into(),
        )
    })
}
