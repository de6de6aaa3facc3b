//! The contestants, and the interface that each of them implements.

mod apalis;
mod entries;
mod graphile;
mod pgflow;
mod underway;

pub(crate) use entries::{ENTRIES, Entry};

use crate::{Result, server::Database};

/// One library with one choice of settings.
pub(crate) trait Contestant {
    /// A worker that is about to take its first job.
    type Ready;

    /// A worker that takes jobs, in tasks of this process.
    type Worker;

    /// Asks its tables whether anything is left to do.
    const IS_LEFT: &str;

    /// Asks its tables how many tasks have ended well; `None` where the row of a job goes away with
    /// its end.
    const ENDED: Option<&str>;

    /// Creates its tables, and queues the jobs.
    async fn queue(&self, terms: &Terms<'_>) -> Result<()>;

    /// Connects, and does what needs no job.
    async fn prepare(&self, terms: &Terms<'_>) -> Result<Self::Ready>;

    /// Begins to take jobs.
    async fn start(&self, ready: Self::Ready) -> Result<Self::Worker>;

    /// Ends, and says what went wrong.
    async fn stop(&self, worker: Self::Worker) -> Result<()>;
}

/// The options of a contestant.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) database: &'a Database,
    pub(crate) jobs: u32,
    pub(crate) concurrency: u16,
}
