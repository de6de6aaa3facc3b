//! Recovers the tasks of workers that are gone.

use std::{error::Error, time::Duration};

use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::Hub;
use crate::{
    sql::{CallError, limit::Limited, maintenance::recover_tasks, retry::jittered},
    worker::wakeup::wake_all,
};

/// The time between two looks. Every process looks; the database lets one at a time.
const INTERVAL: Duration = Duration::from_secs(5);

/// Recovers tasks of all flows until it is dropped.
pub(super) async fn run(hub: &Hub) {
    let calls = Limited::new(hub.pool.clone());
    loop {
        let due = hub.due().recovery;
        sleep_until(due).await;
        if let Err(error) = recover_all(&calls).await {
            warn!(
                error = &error as &dyn Error,
                "recovery of tasks failed, the next try follows"
            );
        }
        hub.due().recovery = Instant::now() + jittered(INTERVAL);
    }
}

/// Recovers batch after batch until nothing is due.
async fn recover_all(calls: &Limited) -> Result<(), CallError> {
    loop {
        let batch = calls
            .call(async |connection| recover_tasks(connection, false).await)
            .await?;
        if batch.requeued > 0 || batch.ended > 0 {
            warn!(
                requeued = batch.requeued,
                failed = batch.ended,
                "tasks that no worker runs any more were recovered"
            );
            // Also where some ended: steps that go on without them may be ready.
            wake_all();
        }
        if !batch.more {
            return Ok(());
        }
    }
}
