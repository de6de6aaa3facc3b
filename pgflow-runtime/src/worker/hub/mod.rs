//! The shared duties of the workers of a process, on a separate thread: one connection wakes them,
//! one statement carries their heartbeats, and one of them looks for stalled tasks.
//!
//! Workers that share a pool share its hub. All hubs run on one thread with its own runtime, so
//! handlers that block their threads stop neither heartbeats nor signals. A connection belongs to
//! the runtime that opened it. A hub therefore opens its own, with the options and hooks of the
//! pool, and never takes one from the pool.

mod heartbeat;
mod line;
mod looks;
mod recovery;
pub(crate) mod thread;
mod watch;

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use futures_util::FutureExt;
use sqlx::{PgPool, postgres::PgConnectOptions};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch as watched},
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{
    Dispatch, Span, dispatcher, error, info,
    instrument::{Instrument, WithSubscriber},
};
use uuid::Uuid;

use super::{Shared, WorkerError};
use crate::{
    lock::lock,
    per_pool::{OfPool, PerPool},
    sql::{Refusal, complete::AttemptKey, heartbeat::Heartbeat},
};

/// The hubs of this process, one per pool that workers use.
static HUBS: PerPool<Hub> = PerPool::new();

/// The pause between two heartbeats. Others take a worker for dead when its last one is older
/// than 6 s.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The pause before a hub that panicked continues.
const AFTER_PANIC: Duration = Duration::from_secs(1);
/// The most that Postgres keeps of a name.
const LONGEST_NAME: usize = 63;

/// The members and their work, which ends with the last holder of this.
#[derive(Debug)]
struct Hub {
    core: Arc<Core>,
    work: OnceLock<AbortOnDropHandle<()>>,
}

/// The part of a hub that its work holds.
#[derive(Debug)]
struct Core {
    /// Asked for its options only.
    pool: PgPool,
    members: Mutex<Vec<Arc<Member>>>,
    /// True while a member wants to be woken by notifications.
    listens: watched::Sender<bool>,
    /// There may be something to recover.
    recovery: Notify,
}

/// A worker that serves.
#[derive(Debug)]
struct Member {
    shared: Arc<Shared>,
    /// Events that concern this worker are logged as its own.
    span: Span,
    dispatch: Dispatch,
    /// Of its handlers.
    runtime: Handle,
}

/// A worker's place in its hub, until this is dropped: from then on the hub sends no heartbeats for
/// the worker.
#[derive(Debug)]
pub(crate) struct Attendance {
    hub: Arc<Hub>,
    worker_id: Uuid,
}

/// Makes a worker that was just registered a member of its pool's hub.
pub(crate) fn attend(shared: &Arc<Shared>) -> Attendance {
    let hub = Hub::of(&shared.pool);
    hub.core.join(Member {
        shared: Arc::clone(shared),
        span: Span::current(),
        dispatch: dispatcher::get_default(Clone::clone),
        runtime: Handle::current(),
    });
    hub.start(&shared.thread);
    Attendance {
        hub,
        worker_id: shared.worker_id,
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.hub.core.leave(self.worker_id);
    }
}

impl OfPool for Hub {
    fn pool(&self) -> &PgPool {
        &self.core.pool
    }
}

impl Hub {
    fn of(pool: &PgPool) -> Arc<Self> {
        HUBS.of(pool, |pool| Self {
            core: Arc::new(Core {
                pool,
                members: Mutex::default(),
                listens: watched::Sender::new(false),
                recovery: Notify::new(),
            }),
            work: OnceLock::new(),
        })
    }

    fn start(&self, thread: &Handle) {
        self.work.get_or_init(|| {
            let work = work(Arc::clone(&self.core));
            let work = work.in_current_span().with_current_subscriber();
            AbortOnDropHandle::new(thread.spawn(work))
        });
    }
}

/// Runs until it is dropped.
async fn work(core: Arc<Core>) {
    loop {
        let work = async {
            tokio::join!(
                heartbeat::run(&core),
                recovery::run(&core),
                watch::run(&core)
            )
        };
        // A hook of the pool may panic. Workers without heartbeats would be worse.
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            error!(
                "the work that keeps the workers of this process alive panicked, it starts again; \
                 check the hooks of the pool, or report a fault of pgflow"
            );
        }
        sleep(AFTER_PANIC).await;
    }
}

impl Core {
    fn join(&self, member: Member) {
        let member = Arc::new(member);
        lock(&self.members).push(Arc::clone(&member));
        self.set_listens();
        // The database may have left its notification out because others got one a moment ago.
        member.shared.wakeup.announce();
    }

    fn leave(&self, worker_id: Uuid) {
        let mut members = lock(&self.members);
        let is_meant = |member: &Arc<Member>| member.shared.worker_id == worker_id;
        let left: Vec<_> = members.extract_if(.., |member| is_meant(member)).collect();
        drop(members);
        drop(left);
        self.set_listens();
    }

    fn set_listens(&self) {
        self.listens.send_if_modified(|was| {
            let members = lock(&self.members);
            let listens = members.iter().any(|member| member.shared.options.listen);
            let is_other = *was != listens;
            *was = listens;
            is_other
        });
    }

    /// Nothing is done to members under the lock: that wakes tasks and runs subscribers, which
    /// are the user's.
    fn members(&self) -> Vec<Arc<Member>> {
        lock(&self.members).clone()
    }

    /// Wakes the members that a notification means: those that serve the queue.
    fn announce(&self, queue_name: &str) {
        for member in self.members() {
            if member.shared.queue_name == queue_name {
                member.shared.wakeup.announce();
            }
        }
    }

    /// Wakes all members, whose notifications may have been lost.
    fn announce_all(&self) {
        for member in self.members() {
            member.shared.wakeup.announce();
        }
    }

    fn fail(&self, fault: impl Fn() -> WorkerError) {
        for member in self.members() {
            member.shared.stop.fail(fault());
        }
    }

    /// Returns how connections of this hub are made. They are named after the first worker's flow
    /// unless the pool's have a name.
    fn connect_options(&self) -> PgConnectOptions {
        // Read each time: a password may have been renewed.
        let options = self.pool.connect_options().as_ref().clone();
        if options
            .get_application_name()
            .is_some_and(|name| !name.is_empty())
        {
            return options;
        }
        let flow = self.members().first().map(|member| member.shared.flow());
        let name = format!("pgflow {}", flow.unwrap_or_default());
        options.application_name(&name[..name.floor_char_boundary(LONGEST_NAME)])
    }
}

impl Member {
    /// Logs in the span of the worker.
    fn log(&self, event: impl FnOnce()) {
        dispatcher::with_default(&self.dispatch, || self.span.in_scope(event));
    }

    /// Does as the answer to a heartbeat says that was sent then; none is the answer to an
    /// unknown worker.
    fn apply(&self, heartbeat: Option<&Heartbeat>, sent: u64) {
        let stop = &self.shared.stop;
        let Some(heartbeat) = heartbeat else {
            stop.fail(WorkerError::NotRegistered(
                Refusal::unknown_worker(self.shared.worker_id).into(),
            ));
            return;
        };
        self.shared.vitals.heartbeat_answered(sent);
        self.shared.attempts.renew(sent);
        if heartbeat.is_deprecated && !stop.is_requested() {
            let reason = heartbeat.deprecated_reason.as_deref();
            self.log(|| {
                info!(
                    reason = reason.unwrap_or("no reason was given"),
                    "worker is deprecated, it drains and stops"
                );
            });
            stop.deprecate(reason.unwrap_or_default());
        }
    }

    /// Tells the handler of an attempt that its result is no longer needed.
    fn cancel_lost(&self, key: &AttemptKey) {
        if self.shared.attempts.cancel(key) {
            self.log(|| {
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
