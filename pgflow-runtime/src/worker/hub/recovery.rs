//! Recovers what dead workers left, from time to time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::Hub;
use crate::{
    sql::{maintenance::requeue_stalled_tasks, retry::jittered},
    worker::wakeup::wake_all,
};

/// Every process does this; the database lets one at a time.
const INTERVAL: Duration = Duration::from_secs(15);

/// Looks for stalled tasks of all flows until it is dropped.
pub(super) async fn run(hub: &Hub) {
    loop {
        let due = hub.due().recovery;
        sleep_until(due).await;
        match requeue_stalled_tasks(&hub.pool).await {
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
        hub.due().recovery = Instant::now() + jittered(INTERVAL);
    }
}
