//! Reads stored definitions.

use std::collections::{BTreeMap, HashMap};

use pgflow_definition::{ElementFailure, QueueMode, RunsOn, SkipMode, StepKind};
use serde_json::Value;
use sqlx::{Connection, PgConnection, PgExecutor, Row, postgres::PgRow};

use super::CallError;
use crate::inspect_flow::{FlowSummary, StoredFlow, StoredOptions, StoredStep};

/// The queues are those that view `coverage` names, which would count the messages of each.
pub(crate) async fn list_flows(
    executor: impl PgExecutor<'_>,
) -> Result<Vec<FlowSummary>, CallError> {
    let rows = sqlx::query(
        "select f.flow_slug, f.queue_mode, f.opt_max_attempts, f.opt_base_delay, f.opt_max_delay, f.opt_give_up_after, f.opt_timeout, null::int as opt_start_delay, f.created_at, \
                (select count(*) from pgflow.steps s where s.flow_slug = f.flow_slug) as steps, q.* \
         from pgflow.flows f \
         cross join lateral ( \
             select count(*) as queues, count(*) filter (where served.workers > 0) as covered_queues, \
                    coalesce(bool_and(served.workers > 0), true) as is_covered, coalesce(sum(served.workers), 0)::bigint as live_workers \
             from pgflow.flow_queues queue \
             cross join lateral ( \
                 select count(*) as workers from pgflow.live_workers w \
                 where w.flow_slug = f.flow_slug and w.queue_name = queue.queue_name and w.deprecated_at is null \
             ) served \
             where queue.flow_slug = f.flow_slug \
         ) q \
         order by f.flow_slug",
    )
    .fetch_all(executor)
    .await?;
    Ok(rows.iter().map(summary).collect::<Result<_, _>>()?)
}

pub(crate) async fn count_live_workers(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
) -> Result<BTreeMap<String, i64>, CallError> {
    let counts: Vec<(String, i64)> = sqlx::query_as(
        "select queue_name, count(*) from pgflow.live_workers \
         where flow_slug = $1 and deprecated_at is null group by queue_name",
    )
    .bind(flow_slug)
    .fetch_all(executor)
    .await?;
    Ok(counts.into_iter().collect())
}

/// A flow with its steps, as they are at one moment; None for an unknown slug.
pub(crate) async fn read_flow(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<Option<StoredFlow>, CallError> {
    let mut transaction = connection
        .begin_with("begin transaction isolation level repeatable read, read only")
        .await?;
    let row = sqlx::query(
        "select flow_slug, queue_mode, opt_max_attempts, opt_base_delay, opt_max_delay, opt_give_up_after, opt_timeout, null::int as opt_start_delay, created_at \
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
        "select step_index, step_slug, step_type, queue_name, opt_max_attempts, opt_base_delay, opt_max_delay, opt_give_up_after, opt_timeout, opt_start_delay, \
                required_input_pattern, forbidden_input_pattern, when_unmet, when_exhausted, on_element_failure, runs_on \
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
        queue_mode: queue_mode(row)?,
        options: options(row)?,
        created_at: row.try_get("created_at")?,
        steps,
    })
}

fn summary(row: &PgRow) -> Result<FlowSummary, sqlx::Error> {
    Ok(FlowSummary {
        flow_slug: row.try_get("flow_slug")?,
        queue_mode: queue_mode(row)?,
        steps: row.try_get("steps")?,
        options: options(row)?,
        created_at: row.try_get("created_at")?,
        queues: row.try_get("queues")?,
        covered_queues: row.try_get("covered_queues")?,
        is_covered: row.try_get("is_covered")?,
        live_workers: row.try_get("live_workers")?,
    })
}

fn queue_mode(row: &PgRow) -> Result<QueueMode, sqlx::Error> {
    const MODES: [QueueMode; 2] = [QueueMode::Flow, QueueMode::Step];
    word(row, "queue_mode", MODES, QueueMode::as_str)
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
        on_element_failure: word(
            row,
            "on_element_failure",
            [ElementFailure::Fail, ElementFailure::Null],
            ElementFailure::as_str,
        )?,
        runs_on: match row.try_get::<Option<&str>, _>("runs_on")? {
            None => None,
            Some(_) => Some(word(row, "runs_on", RunsOn::ALL, RunsOn::as_str)?),
        },
    })
}

fn options(row: &PgRow) -> Result<StoredOptions, sqlx::Error> {
    Ok(StoredOptions {
        max_attempts: row.try_get("opt_max_attempts")?,
        base_delay: row.try_get("opt_base_delay")?,
        max_delay: row.try_get("opt_max_delay")?,
        give_up_after: row.try_get("opt_give_up_after")?,
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
