//! Runs attempts side by side, up to the worker's concurrency.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{Instant, timeout, timeout_at},
};
use tracing::{Instrument, error, warn};

use super::{
    Shared,
    attempt::{self, Finished},
};
use crate::sql::claim::ClaimedTask;

/// How long a free slot waits for others.
const GATHER: Duration = Duration::from_millis(2);
/// How long handlers that are dropped may take for that.
const ABORT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct Executor {
    shared: Arc<Shared>,
    /// One per slot in use: a slot is free again when its result was handed over.
    running: JoinSet<()>,
    busy: Busy,
    finished: mpsc::Sender<Finished>,
}

impl Executor {
    pub(crate) fn new(shared: Arc<Shared>, busy: Busy, finished: mpsc::Sender<Finished>) -> Self {
        Self {
            shared,
            running: JoinSet::new(),
            busy,
            finished,
        }
    }

    /// Waits until a slot is free; returns how many are.
    ///
    /// Handlers that were claimed together often end together. While most slots are in use, the first that becomes free waits a moment
    /// for the others, so that one claim fills them all.
    pub(crate) async fn free_slots(&mut self) -> usize {
        let concurrency = self.shared.options.concurrency;
        self.reap();
        if self.running.len() > concurrency / 2 {
            while self.running.len() >= concurrency {
                self.join_next().await;
            }
            // Either way there is a slot.
            let _ = timeout(GATHER, self.all_ended()).await;
        }
        concurrency - self.running.len()
    }

    /// Whether nothing runs any more.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.reap();
        self.running.is_empty()
    }

    fn reap(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            check(ended);
        }
    }

    async fn all_ended(&mut self) {
        while !self.running.is_empty() {
            self.join_next().await;
        }
    }

    async fn join_next(&mut self) {
        if let Some(ended) = self.running.join_next().await {
            check(ended);
        }
    }

    /// Starts an attempt; its result goes to the completer.
    pub(crate) fn start(&mut self, step_index: usize, task: ClaimedTask) {
        let span = attempt::span(&task);
        let shared = Arc::clone(&self.shared);
        let finished = self.finished.clone();
        let busy = self.busy.enter();
        let run = async move {
            let result = attempt::run(&shared, step_index, task).await;
            // Before the result is sent: who receives it must not wait for a handler that has ended.
            drop(busy);
            if finished.send(result).await.is_err() {
                error!(
                    "the attempt's result could not be recorded; stall recovery will repeat the task"
                );
            }
        };
        self.running.spawn(run.instrument(span));
    }

    /// Lets running attempts end until the deadline, then drops those that still run.
    pub(crate) async fn drain(mut self, deadline: Instant) {
        if timeout_at(deadline, self.all_ended()).await.is_err() {
            warn!(
                tasks = self.running.len(),
                "handlers still ran at the end of the shutdown timeout and were dropped; stall recovery will repeat their tasks"
            );
            self.running.abort_all();
            // A handler that blocks its thread can't be dropped before it awaits, and must not hold the shutdown up.
            if timeout(ABORT, self.all_ended()).await.is_err() {
                warn!(
                    tasks = self.running.len(),
                    "handlers block their threads and could not be dropped; use `tokio::task::spawn_blocking` in them"
                );
            }
        }
    }
}

fn check(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        error!(%error, "an attempt ended without a result; stall recovery will repeat the task");
    }
}

/// How many handlers run right now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Busy(Arc<AtomicUsize>);

/// One running handler.
#[derive(Debug)]
pub(crate) struct BusyGuard(Arc<AtomicUsize>);

impl Busy {
    pub(crate) fn enter(&self) -> BusyGuard {
        self.0.fetch_add(1, Ordering::Release);
        BusyGuard(Arc::clone(&self.0))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
