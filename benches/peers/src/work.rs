//! The work: nothing, counted.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Executes the handler of each contestant.
pub(crate) fn handle() {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of handlers that have run since [`reset`].
pub(crate) fn handled() -> u64 {
    HANDLED.load(Ordering::Relaxed)
}

pub(crate) fn reset() {
    HANDLED.store(0, Ordering::Relaxed);
}

/// The contents of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    OneStep,
    /// One after the other.
    ThreeSteps,
    /// Fifty side by side.
    Fan,
    /// One for each element of a list.
    Map,
}

impl Work {
    pub(crate) const ELEMENTS: u32 = 10_000;

    /// One for each call of a handler.
    pub(crate) fn tasks_per_job(self) -> u32 {
        match self {
            Self::OneStep => 1,
            Self::ThreeSteps => 3,
            Self::Fan => 50,
            Self::Map => Self::ELEMENTS,
        }
    }

    /// Returns the number of jobs that make about as much work as `jobs` of one step, or of three.
    pub(crate) fn jobs(self, jobs: u32) -> u32 {
        match self {
            Self::OneStep | Self::ThreeSteps => jobs,
            Self::Fan => jobs / self.tasks_per_job(),
            Self::Map => 1,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneStep => "1 step",
            Self::ThreeSteps => "3 steps in a row",
            Self::Fan => "50 steps side by side",
            Self::Map => "map of 10,000",
        })
    }
}
