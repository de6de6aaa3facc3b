//! The attempts that a worker runs right now: they can be asked to stop, and are watched.

use std::{
    collections::HashMap,
    future::poll_fn,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::clock::{self, Moment};
use crate::{lock::lock, sql::complete::AttemptKey};

/// The interval at which a worker with an expired lease checks for its renewal before it claims
/// again.
const LOOK_FOR_RENEWAL: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    running: Mutex<HashMap<AttemptKey, Arc<Running>>>,
    lease: Option<Lease>,
}

/// The time for which attempts may run after the last heartbeat that the database answered.
#[derive(Debug)]
struct Lease {
    after: u64,
    /// The time at which that heartbeat was sent.
    renewed: Moment,
}

#[derive(Debug)]
struct Running {
    cancelled: CancellationToken,
    /// Ends the attempt without its handler's consent; only of a worker with a lease.
    abandoned: Option<CancellationToken>,
    deadline: Instant,
    /// Set while the handler is polled.
    polled_since: Moment,
    is_reported: AtomicBool,
}

/// An attempt that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningAttempt {
    attempts: Attempts,
    running: Arc<Running>,
    key: AttemptKey,
}

/// An attempt whose handler holds its thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) key: AttemptKey,
    pub(crate) held: Duration,
}

impl Attempts {
    /// Attempts that end when no heartbeat sent within `after` was answered; the first was sent
    /// at `registered`.
    pub(crate) fn new(abandon_after: Option<Duration>, registered: u64) -> Self {
        Self {
            inner: Arc::new(Inner {
                running: Mutex::default(),
                lease: abandon_after.map(|after| Lease {
                    after: clock::millis(after),
                    renewed: Moment::at(registered),
                }),
            }),
        }
    }

    /// Makes the attempt known; `cancelled` is what its handler looks at.
    pub(crate) fn enter(
        &self,
        key: AttemptKey,
        cancelled: CancellationToken,
        deadline: Instant,
    ) -> RunningAttempt {
        let running = Arc::new(Running {
            cancelled,
            abandoned: self.inner.lease.is_some().then(CancellationToken::new),
            deadline,
            polled_since: Moment::default(),
            is_reported: AtomicBool::new(false),
        });
        self.lock().insert(key.clone(), Arc::clone(&running));
        RunningAttempt {
            attempts: self.clone(),
            running,
            key,
        }
    }

    pub(crate) fn keys(&self) -> Vec<AttemptKey> {
        self.lock().keys().cloned().collect()
    }

    /// Returns the attempts that still run although their time is over: they block their thread.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<AttemptKey> {
        self.keys_of(|running| running.deadline <= now)
    }

    /// Returns, once for each, the attempts whose handlers have held their threads for `longest`.
    /// Of that time counts what came after `since`.
    pub(crate) fn blocked(&self, now: u64, since: u64, longest: Duration) -> Vec<Blocked> {
        let held = |running: &Running| {
            let began = running.polled_since.get()?.max(since);
            let held = Duration::from_millis(now.saturating_sub(began));
            (held >= longest && !running.is_reported.swap(true, Ordering::Relaxed)).then_some(held)
        };
        let running = self.lock();
        running
            .iter()
            .filter_map(|(key, running)| {
                Some(Blocked {
                    key: key.clone(),
                    held: held(running)?,
                })
            })
            .collect()
    }

    /// Asks the attempt's handler to stop. False when it has ended, or was asked before.
    pub(crate) fn cancel(&self, key: &AttemptKey) -> bool {
        let running = self.lock().get(key).cloned();
        // Not under the lock: it wakes whoever waits.
        running.is_some_and(|running| {
            let is_news = !running.cancelled.is_cancelled();
            running.cancelled.cancel();
            is_news
        })
    }

    /// A heartbeat that was sent then was answered.
    pub(crate) fn renew(&self, sent: u64) {
        if let Some(lease) = &self.inner.lease {
            lease.renewed.set(sent);
        }
    }

    pub(crate) fn lease_ends(&self) -> Option<u64> {
        let lease = self.inner.lease.as_ref()?;
        Some(lease.renewed.get()?.saturating_add(lease.after))
    }

    pub(crate) fn is_lease_over(&self) -> bool {
        self.lease_ends().is_some_and(|ends| ends <= clock::now())
    }

    /// Returns once attempts may run.
    pub(crate) async fn lease_holds(&self) {
        while self.is_lease_over() {
            sleep(LOOK_FOR_RENEWAL).await;
        }
    }

    /// Ends the attempts of a worker whose lease is over; returns how many these are.
    pub(crate) fn abandon(&self) -> usize {
        if !self.is_lease_over() {
            return 0;
        }
        let running: Vec<_> = self.lock().values().cloned().collect();
        let abandoned = running.iter().filter_map(|one| {
            let abandoned = one.abandoned.as_ref()?;
            let is_news = !abandoned.is_cancelled();
            one.cancelled.cancel();
            abandoned.cancel();
            is_news.then_some(())
        });
        abandoned.count()
    }

    fn keys_of(&self, is_meant: impl Fn(&Running) -> bool) -> Vec<AttemptKey> {
        let running = self.lock();
        let meant = running.iter().filter(|(_, running)| is_meant(running));
        meant.map(|(key, _)| key.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AttemptKey, Arc<Running>>> {
        lock(&self.inner.running)
    }
}

impl RunningAttempt {
    /// Runs the attempt's work, under the eyes of the watchdog. None when the attempt was
    /// abandoned: then the work was dropped.
    pub(crate) async fn watch<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let Some(abandoned) = &self.running.abandoned else {
            let mut work = pin!(work);
            return Some(poll_fn(|cx| self.poll(work.as_mut(), cx)).await);
        };
        let mut work = Box::pin(work);
        let mut abandoned = pin!(abandoned.cancelled());
        let done = poll_fn(|cx| {
            // The handler may have been woken before the thread that abandons it: after the
            // process stood still, nothing of it must run.
            if abandoned.as_mut().poll(cx).is_ready() || self.attempts.is_lease_over() {
                return Poll::Ready(None);
            }
            self.poll(work.as_mut(), cx).map(Some)
        })
        .await;
        if done.is_none() {
            self.running.cancelled.cancel();
            let _held = self.holds_its_thread();
            // What a handler does when it is dropped is the user's; so is what it panics with.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
                mem::forget(panic);
            }
        }
        done
    }

    fn poll<T>(&self, work: Pin<&mut impl Future<Output = T>>, cx: &mut Context<'_>) -> Poll<T> {
        let _held = self.holds_its_thread();
        work.poll(cx)
    }

    fn holds_its_thread(&self) -> Held<'_> {
        let since = &self.running.polled_since;
        since.set(clock::now());
        Held(since)
    }
}

/// The time in which an attempt's handler holds its thread.
struct Held<'a>(&'a Moment);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.attempts.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
