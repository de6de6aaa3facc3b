//! Warns about steps without a worker.

use std::{error::Error, time::Duration};

use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, warn};

use crate::{sql::coverage::uncovered_steps, startup::Target};

/// The time for the other workers of a deployment to start before they are reported missing.
const PATIENCE: Duration = Duration::from_secs(3);

/// Checks in the background, after a moment in which other processes start; dropping the handle
/// ends it.
pub(crate) fn check_later(pool: &PgPool, started: Vec<Target>) -> AbortOnDropHandle<()> {
    let pool = pool.clone();
    let later = async move {
        sleep(PATIENCE).await;
        check(&pool, &started).await;
    };
    AbortOnDropHandle::new(tokio::spawn(later.in_current_span()))
}

/// Warns of the steps, of flows with a queue for each, that have no live worker. Tasks wait for
/// one, so this is no reason to stop.
async fn check(pool: &PgPool, started: &[Target]) {
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
