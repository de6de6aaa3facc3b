//! Compiles or verifies a definition.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::CallError;

/// The answer of `ensure_flow_compiled`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Compilation {
    pub(crate) status: CompileStatus,
    #[serde(default)]
    pub(crate) differences: Vec<String>,
    #[serde(default)]
    pub(crate) mismatch_kind: Option<MismatchKind>,
    /// Options that the database keeps although the definition says otherwise: operators tune them
    /// live.
    #[serde(default)]
    pub(crate) options_differ: Vec<String>,
    /// The statements that give the database the options of the definition.
    #[serde(default)]
    pub(crate) option_updates: Vec<String>,
    /// Those differences were not reported before.
    #[serde(default)]
    pub(crate) options_are_news: bool,
    /// The database, a local one, has taken other options from the definition.
    #[serde(default)]
    pub(crate) options_followed: bool,
    /// The live workers of a flow that drains.
    #[serde(default)]
    pub(crate) workers: Vec<LiveWorker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CompileStatus {
    /// The definition was missing and has been written.
    Compiled,
    /// The definition was there and is the same.
    Verified,
    /// The definition was there and is another one; nothing was touched.
    Mismatch,
    /// The same in a local database: its workers were asked to stop, and some still live.
    Draining,
    /// The same once none lives: the old definition was deleted with its runs, and the new one has
    /// been written.
    Recompiled,
}

impl CompileStatus {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Verified => "verified",
            Self::Mismatch => "mismatch",
            Self::Draining => "draining",
            Self::Recompiled => "recompiled",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MismatchKind {
    Shape,
    Routing,
}

/// A worker that keeps a local database from replacing a definition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct LiveWorker {
    /// The worker's id.
    pub worker_id: Uuid,
    /// The function that it runs as.
    pub function_name: String,
    /// The only step that it serves; none for a worker of all steps.
    pub step_slug: Option<String>,
    /// The time of its last heartbeat.
    pub last_heartbeat_at: DateTime<Utc>,
    /// The number of tasks that it has started and not ended.
    pub started_tasks: u64,
}

impl fmt::Display for LiveWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "worker {} of function `{}`",
            self.worker_id, self.function_name
        )?;
        if let Some(step) = &self.step_slug {
            write!(f, ", step `{step}`")?;
        }
        write!(
            f,
            ": {} started, last heartbeat at {}",
            match self.started_tasks {
                1 => "1 task".to_owned(),
                tasks => format!("{tasks} tasks"),
            },
            self.last_heartbeat_at.format("%Y-%m-%d %H:%M:%S UTC")
        )
    }
}

/// Writes the definition when it is missing, else compares; a local database replaces one that
/// differs.
///
/// # Errors
///
/// `PF004` for a definition that breaks a rule, `PF006` and `PF010` for its queue names.
pub(crate) async fn ensure_flow_compiled(
    executor: impl PgExecutor<'_>,
    flow_slug: &str,
    shape: &Value,
    queue_mode: &str,
    route_map: &Value,
) -> Result<Compilation, CallError> {
    let compilation: Json<Compilation> = sqlx::query_scalar(
        "select pgflow.ensure_flow_compiled(flow_slug => $1, shape => $2, queue_mode => $3, route_map => $4)",
    )
    .bind(flow_slug)
    .bind(shape)
    .bind(queue_mode)
    .bind(route_map)
    .fetch_one(executor)
    .await?;
    Ok(compilation.0)
}
