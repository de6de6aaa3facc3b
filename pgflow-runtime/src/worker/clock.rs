//! A clock whose moments fit into an atomic.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds since the process began to look at this clock; never 0.
pub(crate) fn now() -> u64 {
    millis(START.elapsed()).saturating_add(1)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A moment, or none.
#[derive(Debug, Default)]
pub(crate) struct Moment(AtomicU64);

impl Moment {
    pub(crate) fn at(moment: u64) -> Self {
        Self(AtomicU64::new(moment))
    }

    pub(crate) fn set(&self, moment: u64) {
        self.0.store(moment, Ordering::Release);
    }

    pub(crate) fn clear(&self) {
        self.set(0);
    }

    /// Sets it unless it has changed since it was `old`.
    pub(crate) fn replace(&self, old: u64, new: u64) {
        // A change that came before is the newer one.
        let _ = self
            .0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<u64> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            moment => Some(moment),
        }
    }
}
