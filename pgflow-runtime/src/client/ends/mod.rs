//! Who waits for the ends of runs, and hears of them from the database.
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

use crate::{
    lock::lock,
    per_pool::{OfPool, PerPool},
};

/// One per pool that is waited over.
static ALL: PerPool<Ends> = PerPool::new();

/// How long the connection is kept when nothing waits: the next wait often follows soon.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Ends {
    pool: PgPool,
    waiters: Mutex<Waiters>,
    is_waited: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Waiters {
    by_run: HashMap<Uuid, Vec<Arc<Notify>>>,
    /// A task keeps the connection.
    is_attended: bool,
}

/// Somebody who waits for a run, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    ends: Arc<Ends>,
    run_id: Uuid,
    hint: Arc<Notify>,
}

impl Waiter {
    pub(super) fn join(pool: &PgPool, run_id: Uuid) -> Self {
        let ends = Ends::of(pool);
        let hint = Arc::new(Notify::new());
        let mut waiters = lock(&ends.waiters);
        let of_run = waiters.by_run.entry(run_id).or_default();
        of_run.push(Arc::clone(&hint));
        ends.is_waited.send_replace(true);
        drop(waiters);
        Self { ends, run_id, hint }
    }

    /// Sleeps until the run has ended, or may have, or the pause is over; hears of ends that come after the first call.
    pub(super) async fn sleep(&self, pause: Duration) {
        self.ends.attend();
        // Both ways to wake up lead to a look.
        let _ = timeout(pause, self.hint.notified()).await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = lock(&self.ends.waiters);
        if let Some(of_run) = waiters.by_run.get_mut(&self.run_id) {
            of_run.retain(|hint| !Arc::ptr_eq(hint, &self.hint));
            if of_run.is_empty() {
                waiters.by_run.remove(&self.run_id);
            }
        }
        let is_waited = !waiters.by_run.is_empty();
        self.ends.is_waited.send_replace(is_waited);
    }
}

impl OfPool for Ends {
    fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Ends {
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

    fn announce(&self, run_id: Uuid) {
        if let Some(of_run) = lock(&self.waiters).by_run.get(&run_id) {
            for hint in of_run {
                hint.notify_one();
            }
        }
    }

    /// Wakes all, whose notifications may have been lost.
    fn announce_all(&self) {
        let waiters = lock(&self.waiters);
        for hint in waiters.by_run.values().flatten() {
            hint.notify_one();
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
struct Attendance(Arc<Ends>);

impl Attendance {
    async fn run(self) {
        let ends = &self.0;
        tokio::select! {
            () = line::run(ends) => {}
            () = ends.until_idle() => {}
            // Whoever closes a pool often wants no connection left behind.
            () = ends.pool.close_event() => {}
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
