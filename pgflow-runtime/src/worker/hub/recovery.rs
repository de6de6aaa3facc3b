//! Recovers the tasks of dead workers.

use std::{error::Error, time::Duration};

use tokio::time::sleep;
use tracing::warn;

use super::Core;
use crate::{
    listening::single,
    sql::{CallError, limit::Limited, maintenance::recover_tasks, retry::jittered},
    worker::wakeup::wake_all,
};

/// The pause before recovery, jittered: the first of several processes does the work.
const PAUSE: Duration = Duration::from_millis(300);

/// Recovers tasks of all flows, each time that heartbeats say that some may be due, until it is
/// dropped.
pub(super) async fn run(core: &Core) {
    // A connection of its own, as the call may take long and heartbeats must not wait for it, and
    // none between two looks.
    let pool = single(&core.pool)
        .after_release(|_, _| Box::pin(async { Ok(false) }))
        .connect_lazy_with(core.connect_options());
    let calls = Limited::new(pool.clone());
    // At once: a worker is often started because one died.
    loop {
        pool.set_connect_options(core.connect_options());
        if let Err(error) = recover_all(&calls).await {
            warn!(
                error = &error as &dyn Error,
                "recovery of tasks failed, the next try follows"
            );
        }
        core.recovery.notified().await;
        // Many processes may have heard of it at the same time; the database lets one at a time.
        sleep(jittered(PAUSE)).await;
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
            // Also where some ended: steps that continue without them may be ready.
            wake_all();
        }
        if !batch.more {
            return Ok(());
        }
    }
}
