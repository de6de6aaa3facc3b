//! Reads the definitions in a database, without the flows' types: for command lines and dashboards.
//!
//! ```no_run
//! # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let mut connection = pool.acquire().await?;
//! if let Some(flow) = pgflow_runtime::inspect_flow::flow(&mut connection, "greetings").await? {
//!     println!("{}", flow.to_mermaid());
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use pgflow_definition::{
    Condition, ElementFailure, QueueMode, RunsOn, SkipMode, StepKind, mermaid,
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};

use crate::sql::{self, CallError};

/// A definition as the database holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredFlow {
    /// Its slug.
    pub flow_slug: String,
    /// One queue for the flow, or one for each step.
    #[serde(serialize_with = "queue_mode")]
    pub queue_mode: QueueMode,
    /// The options that its steps inherit. All are set except the start delay, which flows do not
    /// have.
    pub options: StoredOptions,
    /// The time at which it was stored.
    pub created_at: DateTime<Utc>,
    /// Its steps, in the order of the definition.
    pub steps: Vec<StoredStep>,
}

/// A step as the database holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredStep {
    /// Its place in the definition.
    pub step_index: i32,
    /// Its slug.
    pub step_slug: String,
    /// One task, or one for each element of a list.
    #[serde(serialize_with = "kind")]
    pub step_type: StepKind,
    /// The slugs of the steps that it waits for, in the order of the definition.
    pub depends_on: Vec<String>,
    /// The queue of its tasks.
    pub queue_name: String,
    /// The options that it sets itself; it inherits the rest from the flow.
    pub options: StoredOptions,
    /// `if`.
    pub required_input_pattern: Option<Value>,
    /// `if_not`.
    pub forbidden_input_pattern: Option<Value>,
    /// The effect of an unmet condition.
    #[serde(serialize_with = "mode")]
    pub when_unmet: SkipMode,
    /// The effect when a task has used up its attempts.
    #[serde(serialize_with = "mode")]
    pub when_exhausted: SkipMode,
    /// The effect, on a map step, of an element whose attempts are exhausted.
    #[serde(serialize_with = "element_failure")]
    pub on_element_failure: ElementFailure,
    /// The end of the run that it waits for; none for a step that is part of the run.
    #[serde(serialize_with = "runs_on", skip_serializing_if = "Option::is_none")]
    pub runs_on: Option<RunsOn>,
}

/// Options of a flow or a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredOptions {
    /// Attempts of a task, the first one included.
    pub max_attempts: Option<i32>,
    /// Seconds that the delays between attempts grow from.
    pub base_delay: Option<i32>,
    /// Seconds that a delay between attempts may have at most.
    pub max_delay: Option<i32>,
    /// Seconds that a task may be postponed for, without an attempt that counts.
    pub give_up_after: Option<i32>,
    /// Seconds that an attempt may take.
    pub timeout: Option<i32>,
    /// Seconds between the moment when the step is ready and its first attempt.
    pub start_delay: Option<i32>,
}

/// A flow in a list. Its runs are not counted: no index leads to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FlowSummary {
    /// Its slug.
    pub flow_slug: String,
    /// One queue for the flow, or one for each step.
    #[serde(serialize_with = "queue_mode")]
    pub queue_mode: QueueMode,
    /// The number of its steps.
    pub steps: i64,
    /// The options that its steps inherit. All are set except the start delay, which flows do not
    /// have.
    pub options: StoredOptions,
    /// The time at which it was stored.
    pub created_at: DateTime<Utc>,
    /// The number of its queues.
    pub queues: i64,
    /// The number of its queues with a live worker.
    pub covered_queues: i64,
    /// `true` if each of them has a live worker.
    pub is_covered: bool,
    /// The number of workers that serve them: those whose heartbeat is newer than 6 seconds, and
    /// that were not asked to stop.
    pub live_workers: i64,
}

/// Every stored flow, in the order of slugs. Counts no messages, as
/// [`coverage`](crate::inspect::coverage) does.
pub async fn flows(executor: impl PgExecutor<'_>) -> Result<Vec<FlowSummary>, CallError> {
    sql::inspect_flow::list_flows(executor).await
}

/// Returns the number of workers of each queue of the flow, by the queue's name: those whose
/// heartbeat is newer than 6 seconds, and that were not asked to stop. Queues without a worker are
/// omitted.
pub async fn live_workers(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
) -> Result<BTreeMap<String, i64>, CallError> {
    sql::inspect_flow::count_live_workers(executor, flow_slug).await
}

/// Reads the definition with that slug, as it is at one moment; none for an unknown slug.
pub async fn flow(
    connection: &mut PgConnection,
    flow_slug: &str,
) -> Result<Option<StoredFlow>, CallError> {
    sql::inspect_flow::read_flow(connection, flow_slug).await
}

impl StoredFlow {
    /// The options that apply to a step: its own, and for the rest the flow's. None for a step of
    /// another flow.
    pub fn effective_options(&self, step_slug: &str) -> Option<StoredOptions> {
        let step = self.steps.iter().find(|step| step.step_slug == step_slug)?;
        let (own, inherited) = (step.options, self.options);
        Some(StoredOptions {
            max_attempts: own.max_attempts.or(inherited.max_attempts),
            base_delay: own.base_delay.or(inherited.base_delay),
            max_delay: own.max_delay.or(inherited.max_delay),
            give_up_after: own.give_up_after.or(inherited.give_up_after),
            timeout: own.timeout.or(inherited.timeout),
            start_delay: own.start_delay,
        })
    }

    /// The flow as a Mermaid flowchart: see
    /// [`FlowDefinition::to_mermaid`](pgflow_definition::FlowDefinition::to_mermaid), which draws
    /// the same of the definition in code, but that the database has an order of its own for the
    /// keys of a condition.
    pub fn to_mermaid(&self) -> String {
        let text = |pattern: &Option<Value>| pattern.as_ref().map(Value::to_string);
        let patterns: Vec<_> = self
            .steps
            .iter()
            .map(|step| {
                (
                    text(&step.required_input_pattern),
                    text(&step.forbidden_input_pattern),
                )
            })
            .collect();
        let steps: Vec<mermaid::Step<'_>> = self
            .steps
            .iter()
            .zip(&patterns)
            .map(|(step, (required, forbidden))| mermaid::Step {
                slug: &step.step_slug,
                kind: step.step_type,
                depends_on: step.depends_on.iter().map(String::as_str).collect(),
                condition: Condition {
                    required: required.as_deref(),
                    forbidden: forbidden.as_deref(),
                },
                when_unmet: step.when_unmet,
                when_exhausted: step.when_exhausted,
                on_element_failure: step.on_element_failure,
                runs_on: step.runs_on,
            })
            .collect();
        mermaid::render(&steps)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn queue_mode<S: Serializer>(mode: &QueueMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn element_failure<S: Serializer>(mode: &ElementFailure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn kind<S: Serializer>(kind: &StepKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn mode<S: Serializer>(mode: &SkipMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.as_str())
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it so"
)]
fn runs_on<S: Serializer>(end: &Option<RunsOn>, serializer: S) -> Result<S::Ok, S::Error> {
    end.map(RunsOn::as_str).serialize(serializer)
}
