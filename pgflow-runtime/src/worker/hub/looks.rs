//! Polls for tasks of all idle workers of the process together.
//!
//! Nothing depends on it: a worker that was not polled for in time polls on its own.

use std::{error::Error, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};
use tracing::debug;
use uuid::Uuid;

use super::{Core, Member, line::Line};
use crate::sql::idle::{MOST_WORKERS, workers_with_work};

/// The longest time for one poll.
const PATIENCE: Duration = Duration::from_secs(1);
/// With fewer idle workers each claims on its own: that finds and takes tasks in one call.
const FEWEST: usize = 3;
/// The delay after which another round polls for workers that became idle meanwhile.
const LONGEST_ROUND: Duration = Duration::from_secs(1);

/// Looks for those whose time has come; returns when the next round is due.
pub(super) async fn round(core: &Core, line: &mut Line<'_>) -> Instant {
    let (due, next) = due(&core.members(), Instant::now());
    for some in due.chunks(MOST_WORKERS) {
        // What is not answered in time is left to the workers: heartbeats must not wait for it.
        let _ = timeout(PATIENCE, look(line, some)).await;
    }
    next
}

async fn look(line: &mut Line<'_>, members: &[Arc<Member>]) {
    let looked_at = Instant::now();
    let worker_ids: Arc<[Uuid]> = members
        .iter()
        .map(|member| member.shared.worker_id)
        .collect();
    let found = line
        .ask(&|connection| {
            let worker_ids = Arc::clone(&worker_ids);
            Box::pin(async move { workers_with_work(connection, &worker_ids).await })
        })
        .await;
    match found {
        Ok(found) => {
            for member in members {
                let wakeup = &member.shared.wakeup;
                if found.contains(&member.shared.worker_id) {
                    wakeup.wake();
                } else {
                    wakeup.looked(looked_at);
                }
            }
        }
        // Each worker's own claim tells what is wrong.
        Err(error) => debug!(
            error = &error as &dyn Error,
            "idle workers could not be looked for together, they look by themselves"
        ),
    }
}

/// The idle members whose look is due, and when the next one is.
fn due(members: &[Arc<Member>], now: Instant) -> (Vec<Arc<Member>>, Instant) {
    let mut due = Vec::new();
    let mut next = now + LONGEST_ROUND;
    for member in members {
        let pause = pause(member.shared.options.poll_interval);
        // Also of those that are awake now: they may be asleep by then.
        next = next.min(now + pause);
        let Some(since) = member.shared.wakeup.idle_since() else {
            continue;
        };
        let at = since + pause;
        // With nearly all others: one call serves them together, and from then on their times
        // agree.
        if at <= now + pause * 3 / 4 {
            due.push(Arc::clone(member));
        } else {
            next = next.min(at);
        }
    }
    if due.len() < FEWEST {
        due.clear();
    }
    (due, next)
}

/// Before the worker polls on its own.
fn pause(poll_interval: Duration) -> Duration {
    poll_interval * 3 / 4
}
