//! Recovers what dead workers left, from time to time.

use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;

use super::{Shared, wakeup::wake_all};
use crate::sql::{maintenance::requeue_stalled_tasks, retry::jittered};

/// Every worker does this; the database lets one at a time.
const INTERVAL: Duration = Duration::from_secs(15);

/// Looks for stalled tasks of all flows, at once and until it is dropped: a worker is often started because one died.
pub(crate) async fn run(shared: &Shared) {
    loop {
        match requeue_stalled_tasks(&shared.pool).await {
            Ok(0) => {}
            Ok(tasks) => {
                warn!(tasks, "stalled tasks were put back into their queues");
                wake_all();
            }
            Err(error) => warn!(
                error = &error as &dyn std::error::Error,
                "stalled tasks could not be looked for, the next try follows"
            ),
        }
        sleep(jittered(INTERVAL)).await;
    }
}
