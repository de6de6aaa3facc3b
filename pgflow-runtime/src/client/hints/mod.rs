//! Notifies waiters when to read their runs.
//!
//! All waits and streams over one pool share one task, whatever their number. It listens for
//! notifications and asks the database, in one statement for all, which of their runs have changed.
//! It hints those waiters, who read their run themselves. The task belongs to the runtime of one
//! waiter; when that runtime ends or is blocked, another waiter's takes over.
//!
//! While notifications arrive, polls are rare. The task learns this instead of asking: the database
//! may send none (event level, Realtime), and a pooler may lose them. So it trusts notifications
//! after the first one, until a poll finds a change without a notification.

mod attendance;
mod line;
mod looks;
mod schedule;
mod waiters;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlx::PgPool;
use tokio::{
    sync::{Notify, watch},
    task::yield_now,
    time::{Instant, timeout},
};
use uuid::Uuid;

use self::{
    attendance::Wanted,
    line::Event,
    waiters::{Entry, Waiters},
};
pub(super) use self::{
    schedule::Pace,
    waiters::{Hears, News, Sight},
};
use crate::{
    lock::lock,
    per_pool::{OfPool, PerPool},
    sql::CallError,
};

/// One per pool that is waited over.
static ALL: PerPool<Hints> = PerPool::new();

/// The interval at which a waiter checks that the shared task still runs.
const CHECK: Duration = Duration::from_secs(3);

/// Wakers, spawned tasks and futures never run under the lock of `waiters`: a runtime that shuts
/// down drops tasks inline, and what they drop takes that lock.
#[derive(Debug)]
struct Hints {
    pool: PgPool,
    waiters: Mutex<Waiters>,
    /// A look is due earlier than it was.
    sooner: Notify,
    wanted: watch::Sender<Wanted>,
}

/// Somebody who waits for a run, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    hints: Arc<Hints>,
    id: u64,
    bell: Arc<Notify>,
}

impl Waiter {
    pub(super) fn join(
        pool: &PgPool,
        run_id: Uuid,
        hears: Hears,
        pace: Pace,
        listens: bool,
    ) -> Self {
        let hints = Hints::of(pool);
        let bell = Arc::new(Notify::new());
        let entry = Entry::new(run_id, hears, pace, listens, Arc::clone(&bell));
        let id = lock(&hints.waiters).add(entry);
        hints.refresh_wanted();
        Self { hints, id, bell }
    }

    /// Notes what the waiter itself saw of its run: it is hinted when others see something else.
    pub(super) fn saw(&self, sight: Sight) {
        lock(&self.hints.waiters).saw(self.id, sight);
    }

    /// Sleeps until there is, or may be, something new.
    pub(super) async fn sleep(&self) -> News {
        let _asleep = Asleep::new(self);
        loop {
            if self.hints.pool.is_closed() {
                return News::Look;
            }
            let news = lock(&self.hints.waiters).take_news(self.id);
            if let Some(news) = news {
                return news;
            }
            if !self.hints.attend() {
                // The bell that rang for that would be answered by the next try, and so on: a
                // runtime that shuts down drops its tasks when they yield.
                yield_now().await;
            }
            // Both ways to wake up lead to another round.
            let _ = timeout(CHECK, self.bell.notified()).await;
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let removed = lock(&self.hints.waiters).remove(self.id);
        drop(removed);
        self.hints.refresh_wanted();
    }
}

/// A waiter whose run is polled, until this is dropped: a stream that is not read costs nothing.
struct Asleep<'a>(&'a Waiter);

impl<'a> Asleep<'a> {
    fn new(waiter: &'a Waiter) -> Self {
        let is_first = lock(&waiter.hints.waiters).fall_asleep(waiter.id, Instant::now());
        if is_first {
            waiter.hints.sooner.notify_one();
        }
        Self(waiter)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        lock(&self.0.hints.waiters).wake_up(self.0.id);
    }
}

impl OfPool for Hints {
    fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Hints {
    fn of(pool: &PgPool) -> Arc<Self> {
        ALL.of(pool, Self::new)
    }

    fn new(pool: PgPool) -> Self {
        Self {
            pool,
            waiters: Mutex::new(Waiters::new(Instant::now())),
            sooner: Notify::new(),
            wanted: watch::Sender::default(),
        }
    }

    /// Hints those whom a notification concerns.
    fn announce(&self, event: Event) {
        let bells = lock(&self.waiters).announce(event);
        ring(bells);
    }

    /// The connection for notifications was made, or lost: what happened before is not known.
    fn line_changed(&self) {
        lock(&self.waiters).line_changed(Instant::now());
        self.sooner.notify_one();
    }

    /// Without holding the lock while those are woken who look at what is wanted.
    fn refresh_wanted(&self) {
        self.wanted.send_if_modified(|wanted| {
            let now = lock(&self.waiters).wanted();
            let is_other = *wanted != now;
            *wanted = now;
            is_other
        });
    }
}

fn ring(bells: Vec<Arc<Notify>>) {
    for bell in bells {
        bell.notify_one();
    }
}

/// The error of a statement that was made for many waiters.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
struct SharedFailure(Arc<CallError>);

/// The error of a look that was made for many, for one of them.
pub(super) fn own(error: Arc<CallError>) -> CallError {
    match Arc::try_unwrap(error) {
        Ok(error) => error,
        Err(shared) => CallError::Database(sqlx::Error::Io(std::io::Error::other(SharedFailure(
            shared,
        )))),
    }
}

#[cfg(test)]
mod tests;
