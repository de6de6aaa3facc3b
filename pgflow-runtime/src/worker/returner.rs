//! Gives back tasks that were claimed and will not be brought to an end here.

use std::{error::Error, sync::Arc};

use tokio::{sync::mpsc, time::sleep};
use tracing::{debug, error};

use super::{Shared, claimer::delay_after};
use crate::sql::{
    limit::Limited,
    release::{Start, release_tasks},
    retry::Backoff,
};

/// Runs until all senders are dropped. Tasks that arrive during a call are returned with the next
/// one.
pub(crate) async fn run(shared: Arc<Shared>, mut tasks: mpsc::UnboundedReceiver<Start>) {
    let calls = Limited::new(shared.pool.clone());
    while let Some(first) = tasks.recv().await {
        let mut batch = vec![first];
        while let Ok(next) = tasks.try_recv() {
            batch.push(next);
        }
        release(&shared, &calls, &batch).await;
    }
}

async fn release(shared: &Shared, calls: &Limited, tasks: &[Start]) {
    let mut backoff = Backoff::database();
    // A shutdown ends this by dropping it, when its time is over.
    loop {
        let released =
            calls.call(async |connection| release_tasks(connection, shared.worker_id, tasks).await);
        match released.await {
            Ok(released) => {
                debug!(released, "claimed tasks were given back");
                return;
            }
            Err(error) if error.is_transient() => {
                sleep(delay_after(&error, &mut backoff)).await;
            }
            Err(error) => {
                error!(
                    tasks = tasks.len(),
                    error = &error as &dyn Error,
                    "claimed tasks could not be given back; recovery will repeat them"
                );
                return;
            }
        }
    }
}
