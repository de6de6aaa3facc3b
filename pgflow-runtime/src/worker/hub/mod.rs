//! What the workers of one process do together: they are woken by one connection, say that they live in one statement, and look for stalled
//! tasks once for all.
//!
//! Those that share a pool meet in its hub. One of them leads, for all; when it ends, or its runtime does, another takes over. So nothing depends
//! on one worker, and 30 of them cost the database as little as one.

mod heartbeat;
mod leadership;
mod line;
mod looks;
mod recovery;

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use sqlx::PgPool;
use tokio::{sync::watch, time::Instant};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span, info};
use uuid::Uuid;

use super::{Shared, WorkerError};
use crate::{
    lock::lock,
    per_pool::{OfPool, PerPool},
    sql::{Refusal, complete::AttemptKey, heartbeat::Heartbeat},
};
use leadership::Leadership;

/// The hubs of this process, one per pool that workers use.
static HUBS: PerPool<Hub> = PerPool::new();

/// How often all say that they live. Others take a worker for dead when its heartbeat is older than 6 s.
const HEARTBEAT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Hub {
    pool: PgPool,
    members: Mutex<Vec<Arc<Member>>>,
    leadership: Leadership,
    /// Whether a member wants to be woken by notifications.
    listens: watch::Sender<bool>,
    due: Mutex<Due>,
}

/// A worker that serves.
#[derive(Debug)]
struct Member {
    shared: Arc<Shared>,
    /// What concerns this worker is logged as its own.
    span: Span,
}

/// When what the leader does is due, whoever leads then.
#[derive(Debug)]
struct Due {
    heartbeat: Instant,
    recovery: Instant,
}

/// A worker's place in its hub, until this is dropped: from then on nobody speaks for the worker.
#[derive(Debug)]
pub(crate) struct Attendance {
    hub: Arc<Hub>,
    worker_id: Uuid,
    _task: AbortOnDropHandle<()>,
}

/// Makes a worker that was just registered a member of its pool's hub.
pub(crate) fn attend(shared: &Arc<Shared>) -> Attendance {
    let hub = Hub::of(&shared.pool);
    hub.join(Member {
        shared: Arc::clone(shared),
        span: Span::current(),
    });
    let task = tokio::spawn(leadership::attend(Arc::clone(&hub)).in_current_span());
    Attendance {
        hub,
        worker_id: shared.worker_id,
        _task: AbortOnDropHandle::new(task),
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.hub.leave(self.worker_id);
    }
}

impl OfPool for Hub {
    fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Hub {
    fn of(pool: &PgPool) -> Arc<Self> {
        HUBS.of(pool, |pool| {
            let now = Instant::now();
            Self {
                pool,
                members: Mutex::default(),
                leadership: Leadership::default(),
                listens: watch::Sender::new(false),
                due: Mutex::new(Due {
                    // Registration was the first heartbeat.
                    heartbeat: now + HEARTBEAT,
                    // A worker is often started because one died.
                    recovery: now,
                }),
            }
        })
    }

    fn join(&self, member: Member) {
        // The database may have left its notification out because others got one a moment ago.
        member.shared.wakeup.announce();
        let mut members = lock(&self.members);
        members.push(Arc::new(member));
        self.set_listens(&members);
    }

    fn leave(&self, worker_id: Uuid) {
        let mut members = lock(&self.members);
        members.retain(|member| member.shared.worker_id != worker_id);
        self.set_listens(&members);
    }

    fn set_listens(&self, members: &[Arc<Member>]) {
        let listens = members.iter().any(|member| member.shared.options.listen);
        self.listens.send_if_modified(|was| {
            let is_other = *was != listens;
            *was = listens;
            is_other
        });
    }

    fn members(&self) -> Vec<Arc<Member>> {
        lock(&self.members).clone()
    }

    /// Wakes the members that a notification means: those that serve the queue.
    fn announce(&self, queue_name: &str) {
        for member in lock(&self.members).iter() {
            if member.shared.queue_name == queue_name {
                member.shared.wakeup.announce();
            }
        }
    }

    /// Wakes all members, whose notifications may have been lost.
    fn announce_all(&self) {
        for member in lock(&self.members).iter() {
            member.shared.wakeup.announce();
        }
    }

    /// Tells the members that were asked for, sorted, what the database said about them.
    fn hear(&self, asked: &[Uuid], heard: &[Heartbeat]) {
        // Under the lock: a member that has left in the meantime has stopped, and misses nothing.
        for member in lock(&self.members).iter() {
            if asked.binary_search(&member.shared.worker_id).is_ok() {
                let heartbeat = heard
                    .iter()
                    .find(|heard| heard.worker_id == member.shared.worker_id);
                member.span.in_scope(|| member.hear(heartbeat));
            }
        }
    }

    fn fail(&self, fault: impl Fn() -> WorkerError) {
        for member in lock(&self.members).iter() {
            member.shared.stop.fail(fault());
        }
    }

    fn due(&self) -> MutexGuard<'_, Due> {
        lock(&self.due)
    }
}

impl Member {
    fn hear(&self, heartbeat: Option<&Heartbeat>) {
        let Shared {
            stop, worker_id, ..
        } = &*self.shared;
        match heartbeat {
            None => stop.fail(WorkerError::NotRegistered(
                Refusal::unknown_worker(*worker_id).into(),
            )),
            Some(heard) if heard.is_deprecated && !stop.is_requested() => {
                info!(
                    reason = heard
                        .deprecated_reason
                        .as_deref()
                        .unwrap_or("no reason was given"),
                    "worker is deprecated, it drains and stops"
                );
                stop.request();
            }
            Some(_) => {}
        }
    }

    /// Tells the handler of an attempt that nobody waits for it any more.
    fn lose(&self, key: &AttemptKey) {
        if self.shared.attempts.cancel(key) {
            self.span.in_scope(|| {
                info!(
                    run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
                    "the attempt is no longer the current one, its handler was told to stop"
                );
            });
        }
    }
}

#[cfg(test)]
mod tests;
