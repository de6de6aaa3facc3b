//! Says which steps nobody serves.

use std::error::Error;

use sqlx::PgPool;
use tracing::warn;

use crate::{sql::coverage::uncovered_steps, startup::Target};

/// Warns of the steps, of flows with a queue for each, that have no live worker. Tasks wait for one, so this is no reason to stop.
pub(crate) async fn check(pool: &PgPool, started: &[Target]) {
    let mut flows: Vec<&str> = started
        .iter()
        .filter(|target| target.step.is_some())
        .map(|target| target.definition.slug)
        .collect();
    flows.sort_unstable();
    flows.dedup();
    for flow in flows {
        match uncovered_steps(pool, &[flow]).await {
            Ok(steps) if steps.is_empty() => {}
            Ok(steps) => warn!(
                flow,
                steps = steps
                    .iter()
                    .map(|step| &*step.step_slug)
                    .collect::<Vec<_>>()
                    .join(", "),
                "no worker serves these steps of the flow so far; their tasks wait until one starts (`pgflow coverage` shows it)"
            ),
            Err(error) => warn!(
                flow,
                error = &error as &dyn Error,
                "it could not be found out whether each step of the flow has a worker"
            ),
        }
    }
}
