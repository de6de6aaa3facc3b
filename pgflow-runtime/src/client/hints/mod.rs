//! Who waits for what happens to runs, and hears of it from the database.
//!
//! Those that wait over one pool share one connection for notifications, made when the first of them finds its run not ended yet. It is kept by a task
//! of one waiter's runtime; when that runtime ends, another waiter's takes over. Nothing depends on it: each waiter also polls.

mod line;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlx::PgPool;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use uuid::Uuid;

use self::line::Event;
use crate::{
    lock::lock,
    per_pool::{OfPool, PerPool},
};

/// One per pool that is waited over.
static ALL: PerPool<Hints> = PerPool::new();

/// How long the connection is kept when nothing waits: the next wait often follows soon.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Hints {
    pool: PgPool,
    waiters: Mutex<Waiters>,
    is_waited: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Waiters {
    by_run: HashMap<Uuid, Vec<Arc<Ear>>>,
    /// A task keeps the connection.
    is_attended: bool,
}

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hears {
    /// The end of the run only: what happens before wakes nobody who waits for that.
    TheEnd,
    /// All that the database tells of the run and of its steps.
    Everything,
}

#[derive(Debug)]
struct Ear {
    hears: Hears,
    hint: Notify,
}

/// Somebody who waits for a run, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    hints: Arc<Hints>,
    run_id: Uuid,
    ear: Arc<Ear>,
}

impl Waiter {
    pub(super) fn join(pool: &PgPool, run_id: Uuid, hears: Hears) -> Self {
        let hints = Hints::of(pool);
        let ear = Arc::new(Ear {
            hears,
            hint: Notify::new(),
        });
        let mut waiters = lock(&hints.waiters);
        let of_run = waiters.by_run.entry(run_id).or_default();
        of_run.push(Arc::clone(&ear));
        hints.is_waited.send_replace(true);
        drop(waiters);
        Self { hints, run_id, ear }
    }

    /// Sleeps until there is, or may be, something new, or the pause is over; hears of what comes after the first call.
    pub(super) async fn sleep(&self, pause: Duration) {
        self.hints.attend();
        // Both ways to wake up lead to a look.
        let _ = timeout(pause, self.ear.hint.notified()).await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = lock(&self.hints.waiters);
        if let Some(of_run) = waiters.by_run.get_mut(&self.run_id) {
            of_run.retain(|ear| !Arc::ptr_eq(ear, &self.ear));
            if of_run.is_empty() {
                waiters.by_run.remove(&self.run_id);
            }
        }
        let is_waited = !waiters.by_run.is_empty();
        self.hints.is_waited.send_replace(is_waited);
    }
}

impl OfPool for Hints {
    fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Hints {
    fn of(pool: &PgPool) -> Arc<Self> {
        ALL.of(pool, |pool| Self {
            pool,
            waiters: Mutex::default(),
            is_waited: watch::Sender::new(false),
        })
    }

    /// Sees to it that a task keeps the connection.
    fn attend(self: &Arc<Self>) {
        // Otherwise it would end at once and wake all, who would start it again.
        if self.pool.is_closed() {
            return;
        }
        let mut waiters = lock(&self.waiters);
        if !waiters.is_attended {
            waiters.is_attended = true;
            tokio::spawn(Attendance(Arc::clone(self)).run());
        }
    }

    fn announce(&self, event: Event) {
        if let Some(of_run) = lock(&self.waiters).by_run.get(&event.run_id) {
            for ear in of_run {
                if event.is_end || ear.hears == Hears::Everything {
                    ear.hint.notify_one();
                }
            }
        }
    }

    /// Wakes all, whose notifications may have been lost.
    fn announce_all(&self) {
        let waiters = lock(&self.waiters);
        for ear in waiters.by_run.values().flatten() {
            ear.hint.notify_one();
        }
    }

    /// Returns when nothing has waited for a while.
    async fn until_idle(&self) {
        let mut is_waited = self.is_waited.subscribe();
        // These keep the sender, so that waiting never fails.
        while is_waited.wait_for(|&waited| !waited).await.is_ok() {
            if timeout(LINGER, is_waited.wait_for(|&waited| waited))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// Makes the task the one that keeps the connection, until it ends, or is dropped with its runtime.
struct Attendance(Arc<Hints>);

impl Attendance {
    async fn run(self) {
        let hints = &self.0;
        tokio::select! {
            () = line::run(hints) => {}
            () = hints.until_idle() => {}
            // Whoever closes a pool often wants no connection left behind.
            () = hints.pool.close_event() => {}
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        lock(&self.0.waiters).is_attended = false;
        // Whoever still waits has another task started.
        self.0.announce_all();
    }
}

#[cfg(test)]
mod tests;
