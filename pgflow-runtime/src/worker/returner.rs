//! Gives back tasks that were claimed and will not be run here.

use std::{error::Error, sync::Arc};

use tokio::{sync::mpsc, time::sleep};
use tracing::{debug, error};

use super::{Shared, claimer::delay_after};
use crate::sql::{claim::ClaimedTask, limit::Limited, release::release_tasks, retry::Backoff};

/// Runs until nobody can send anything any more. What gathers during a call goes back with the next one.
pub(crate) async fn run(shared: Arc<Shared>, mut tasks: mpsc::UnboundedReceiver<ClaimedTask>) {
    let calls = Limited::new(shared.pool.clone());
    while let Some(first) = tasks.recv().await {
        let mut batch = vec![first];
        while let Ok(next) = tasks.try_recv() {
            batch.push(next);
        }
        release(&shared, &calls, &batch).await;
    }
}

async fn release(shared: &Shared, calls: &Limited, tasks: &[ClaimedTask]) {
    let mut backoff = Backoff::database();
    let released = async {
        loop {
            let released = calls
                .call(async |connection| release_tasks(connection, shared.worker_id, tasks).await);
            match released.await {
                Err(error) if error.is_transient() => {
                    sleep(delay_after(&error, &mut backoff)).await;
                }
                result => return result,
            }
        }
    };
    let released = shared
        .stop
        .within(shared.options.shutdown_timeout, released)
        .await;
    match released {
        Some(Ok(released)) => debug!(released, "claimed tasks were given back"),
        Some(Err(error)) => error!(
            tasks = tasks.len(),
            error = &error as &dyn Error,
            "claimed tasks could not be given back; stall recovery will repeat them"
        ),
        None => error!(
            tasks = tasks.len(),
            "claimed tasks could not be given back in time; stall recovery will repeat them"
        ),
    }
}
