//! Compiles or verifies a definition.

use serde::Deserialize;
use serde_json::Value;
use sqlx::{PgExecutor, types::Json};

use super::CallError;

/// What `ensure_flow_compiled` answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Compilation {
    pub(crate) status: CompileStatus,
    #[serde(default)]
    pub(crate) differences: Vec<String>,
    #[serde(default)]
    pub(crate) mismatch_kind: Option<MismatchKind>,
    /// Options that the database keeps although the definition says otherwise: operators tune them live.
    #[serde(default)]
    pub(crate) options_differ: Vec<String>,
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
}

impl CompileStatus {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Verified => "verified",
            Self::Mismatch => "mismatch",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MismatchKind {
    Shape,
    Routing,
}

/// Writes the definition when it is missing, else compares.
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
