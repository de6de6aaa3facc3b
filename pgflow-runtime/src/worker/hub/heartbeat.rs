//! Says that the workers live, whatever their handlers do, and hears what they should know.

use std::{error::Error, time::Duration};

use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, warn};
use uuid::Uuid;

use super::{
    HEARTBEAT, Hub,
    line::{Line, Lost},
};
use crate::{
    sql::{
        CallError,
        complete::AttemptKey,
        error::ErrorClass,
        heartbeat::{Heartbeat, MOST_ATTEMPTS, lost_attempts, worker_heartbeats},
        retry::Backoff,
    },
    worker::WorkerError,
};

/// How long the hub's own connection may take before the pool is asked as well: the rest of the 6 s after which a worker seems dead.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long to look for lost attempts: the next heartbeat must not wait for that.
const LOOK: Duration = Duration::from_secs(3);

/// Beats until it is dropped.
pub(super) async fn run(hub: &Hub, line: &Line) {
    let mut backoff = Backoff::database();
    loop {
        let due = hub.due().heartbeat;
        sleep_until(due).await;
        let started = Instant::now();
        match beat(hub, line).await {
            Ok(()) => {
                backoff.reset();
                hub.due().heartbeat = started + HEARTBEAT;
                // What is not found out in time is with the next heartbeat.
                let _ = timeout(LOOK, look_for_lost_attempts(hub, line)).await;
            }
            Err(error) => {
                if error.class() == ErrorClass::PoolClosed {
                    hub.fail(|| {
                        WorkerError::PoolClosed(CallError::Database(sqlx::Error::PoolClosed))
                    });
                }
                let delay = backoff.next_delay();
                warn!(
                    ?delay,
                    error = &error as &dyn Error,
                    "a heartbeat failed, the next one follows"
                );
                sleep(delay).await;
            }
        }
    }
}

async fn beat(hub: &Hub, line: &Line) -> Result<(), CallError> {
    let members = hub.members();
    let mut worker_ids: Vec<Uuid> = members
        .iter()
        .map(|member| member.shared.worker_id)
        .collect();
    worker_ids.sort_unstable();
    let heard = say(hub, line, &worker_ids).await?;
    hub.hear(&worker_ids, &heard);
    Ok(())
}

/// Over the hub's own connection; when that is not there, or silent, over the pool.
async fn say(hub: &Hub, line: &Line, worker_ids: &[Uuid]) -> Result<Vec<Heartbeat>, CallError> {
    let by_pool = worker_heartbeats(&hub.pool, worker_ids);
    // A closed pool says so; the hub's own connection would hide it.
    if !*hub.listens.borrow() || hub.pool.is_closed() {
        return by_pool.await;
    }
    let by_line = say_by_line(line, worker_ids);
    tokio::pin!(by_line);
    let is_silent = match timeout(PATIENCE, &mut by_line).await {
        Ok(Some(heard)) => return Ok(heard),
        Ok(None) => false,
        Err(_elapsed) => true,
    };
    tokio::select! {
        heard = by_pool => heard,
        Some(heard) = by_line, if is_silent => Ok(heard),
    }
}

/// None when the connection is of no help. One that is lost meanwhile is made anew and asked again, once: a table that somebody has locked must
/// not collect connections that wait for it.
async fn say_by_line(line: &Line, worker_ids: &[Uuid]) -> Option<Vec<Heartbeat>> {
    for _ in 0..2 {
        match line.heartbeats(worker_ids.to_vec()).await {
            Ok(Ok(heard)) => return Some(heard),
            Ok(Err(error)) => {
                debug!(
                    error = &error as &dyn Error,
                    "the pool is asked for the heartbeat"
                );
                return None;
            }
            Err(Lost) => {}
        }
    }
    None
}

/// Tells handlers whose attempts have lost their meaning.
async fn look_for_lost_attempts(hub: &Hub, line: &Line) {
    let members = hub.members();
    let running: Vec<_> = members
        .iter()
        .flat_map(|member| {
            let keys = member.shared.attempts.keys();
            keys.into_iter().map(move |key| (member, key))
        })
        .collect();
    for some in running.chunks(MOST_ATTEMPTS) {
        let keys: Vec<AttemptKey> = some.iter().map(|(_, key)| key.clone()).collect();
        match ask_which_are_lost(hub, line, keys).await {
            Ok(lost) => {
                for (member, key) in lost.into_iter().filter_map(|position| some.get(position)) {
                    member.lose(key);
                }
            }
            Err(error) => {
                warn!(
                    error = &error as &dyn Error,
                    "it could not be found out which attempts are still wanted, the next try follows"
                );
                return;
            }
        }
    }
}

async fn ask_which_are_lost(
    hub: &Hub,
    line: &Line,
    keys: Vec<AttemptKey>,
) -> Result<Vec<usize>, CallError> {
    if *hub.listens.borrow()
        && let Ok(Ok(answer)) = timeout(PATIENCE, line.lost_attempts(keys.clone())).await
    {
        return answer;
    }
    lost_attempts(&hub.pool, &keys).await
}
