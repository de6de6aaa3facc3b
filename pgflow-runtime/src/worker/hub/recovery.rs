//! Recovers what dead workers left, from time to time.

use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;

use super::Core;
use crate::{
    listening::single,
    sql::{limit::Limited, maintenance::requeue_stalled_tasks, retry::jittered},
    worker::wakeup::wake_all,
};

/// Every process does this; the database lets one at a time.
const INTERVAL: Duration = Duration::from_secs(15);

/// Looks for stalled tasks of all flows until it is dropped.
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
        let requeued = calls.call(async |connection| requeue_stalled_tasks(connection).await);
        match requeued.await {
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
