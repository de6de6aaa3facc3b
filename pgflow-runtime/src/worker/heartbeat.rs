//! Says that the worker lives, whatever its handlers do.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::{info, warn};

use super::{Shared, WorkerError};
use crate::sql::{RefusalCode, error::ErrorClass, worker::worker_heartbeat};

/// Others take a worker for dead when its heartbeat is older than 6 s.
const INTERVAL: Duration = Duration::from_secs(5);

/// Beats until it is dropped, or the worker is no longer registered.
pub(crate) async fn run(shared: &Shared) {
    // Registration was the first heartbeat.
    let mut interval = interval_at(Instant::now() + INTERVAL, INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        match worker_heartbeat(&shared.pool, shared.worker_id).await {
            Ok(true) if !shared.stop.is_requested() => {
                info!("worker is deprecated, it drains and stops");
                shared.stop.request();
            }
            Ok(_) => {}
            Err(error) if error.refusal() == Some(RefusalCode::UnknownWorker) => {
                shared.stop.fail(WorkerError::NotRegistered(error));
                return;
            }
            Err(error) if error.class() == ErrorClass::PoolClosed => {
                shared.stop.fail(WorkerError::PoolClosed(error));
                return;
            }
            Err(error) => warn!(
                error = &error as &dyn std::error::Error,
                "heartbeat failed, the next one follows"
            ),
        }
    }
}
