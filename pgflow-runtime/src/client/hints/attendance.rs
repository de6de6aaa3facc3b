//! The task that listens and looks for all who wait over a pool.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{CHECK, Hints, line, looks, ring};
use crate::lock::lock;

/// The time for which the task continues when nothing waits: the next wait often follows soon.
pub(super) const LINGER: Duration = Duration::from_secs(5);
/// The interval at which it shows that its runtime still runs it.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);

/// The needs of those who wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) is_waited: bool,
    /// Somebody wants notifications.
    pub(super) is_listened: bool,
}

/// The task that attends, and the time of its last sign of life.
#[derive(Debug, Default)]
pub(super) struct Attendant {
    /// One more for each task.
    term: u64,
    alive_at: Option<Instant>,
}

impl Attendant {
    #[cfg(test)]
    pub(super) fn term(&self) -> u64 {
        self.term
    }

    /// The term of a new task, when none lives.
    fn take_over(&mut self, now: Instant) -> Option<u64> {
        if let Some(alive_at) = self.alive_at
            && now.saturating_duration_since(alive_at) < CHECK
        {
            return None;
        }
        self.term += 1;
        self.alive_at = Some(now);
        Some(self.term)
    }

    /// Returns whether the task of that term still attends.
    fn show_life(&mut self, term: u64, now: Instant) -> bool {
        let attends = self.term == term;
        if attends {
            self.alive_at = Some(now);
        }
        attends
    }

    /// Returns whether no task attends from here on.
    fn leave(&mut self, term: u64) -> bool {
        let attends = self.term == term;
        if attends {
            self.alive_at = None;
        }
        attends
    }
}

impl Hints {
    /// Sees to it that a task attends. Returns whether one does: a runtime that shuts down drops it
    /// at once.
    pub(super) fn attend(self: &Arc<Self>) -> bool {
        let now = Instant::now();
        let term = {
            let mut waiters = lock(&self.waiters);
            let term = waiters.attendant.take_over(now);
            if term.is_some() {
                // What the task before was about to look at has no next look.
                waiters.look_at_unscheduled(now);
            }
            term
        };
        if let Some(term) = term {
            let attendance = Attendance {
                hints: Arc::clone(self),
                term,
            };
            tokio::spawn(attendance.run());
        }
        term.is_none() || lock(&self.waiters).attendant.alive_at.is_some()
    }

    /// Returns when nothing has waited for a while.
    async fn until_idle(&self) {
        self.until_unwanted(|wanted| wanted.is_waited).await;
    }

    /// Returns when something has not been wanted for a while.
    pub(super) async fn until_unwanted(&self, is_wanted: impl Fn(&Wanted) -> bool) {
        let mut wanted = self.wanted.subscribe();
        // These keep the sender, so that waiting never fails.
        while wanted.wait_for(|wanted| !is_wanted(wanted)).await.is_ok() {
            if timeout(LINGER, wanted.wait_for(&is_wanted)).await.is_err() {
                return;
            }
        }
    }

    async fn until_replaced(&self, term: u64) {
        while lock(&self.waiters)
            .attendant
            .show_life(term, Instant::now())
        {
            sleep(SIGN_OF_LIFE).await;
        }
    }
}

/// Makes the task the one that attends, until it ends, or is dropped with its runtime.
struct Attendance {
    hints: Arc<Hints>,
    term: u64,
}

impl Attendance {
    async fn run(self) {
        let hints = &self.hints;
        tokio::select! {
            () = line::run(hints) => {}
            () = looks::run(hints) => {}
            () = hints.until_idle() => {}
            () = hints.until_replaced(self.term) => {}
            // Whoever closes a pool often wants no connection left behind.
            () = hints.pool.close_event() => {}
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let bells = {
            let mut waiters = lock(&self.hints.waiters);
            let is_free = waiters.attendant.leave(self.term);
            if is_free { waiters.bells() } else { Vec::new() }
        };
        // Whoever still waits has another task started.
        ring(bells);
    }
}
