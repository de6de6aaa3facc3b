//! Runs attempts side by side, up to the worker's concurrency. Tasks that were claimed ahead wait for a slot, but not for long.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::{JoinError, JoinSet},
    time::{Instant, timeout, timeout_at},
};
use tracing::{Instrument, error, warn};

use super::{
    Shared,
    attempt::{self, Finished},
    pace::Pace,
};
use crate::sql::claim::ClaimedTask;

/// How long room for a task waits for more room.
const GATHER: Duration = Duration::from_millis(2);
/// How long a task that was claimed ahead waits for a slot before it is given back: others may have one.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long handlers that are dropped may take for that.
const ABORT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct Executor {
    shared: Arc<Shared>,
    /// One per task that was claimed and whose result was not handed over yet.
    claimed: JoinSet<()>,
    slots: Arc<Semaphore>,
    pace: Arc<Pace>,
    busy: Busy,
    finished: mpsc::Sender<Finished>,
    returned: mpsc::UnboundedSender<ClaimedTask>,
}

impl Executor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        busy: Busy,
        finished: mpsc::Sender<Finished>,
        returned: mpsc::UnboundedSender<ClaimedTask>,
    ) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(shared.options.concurrency)),
            shared,
            claimed: JoinSet::new(),
            pace: Arc::default(),
            busy,
            finished,
            returned,
        }
    }

    pub(crate) fn pace(&self) -> Arc<Pace> {
        Arc::clone(&self.pace)
    }

    /// Waits until there is room; returns for how many tasks.
    ///
    /// Handlers that were claimed together often end together. While much of the room is taken, the first that becomes free waits a moment
    /// for more, so that one claim fills it all.
    pub(crate) async fn room(&mut self) -> usize {
        self.reap();
        if self.claimed.len() > self.capacity() / 2 {
            self.wait_for_room().await;
            // Either way there is room.
            let _ = timeout(GATHER, self.gather()).await;
        }
        // Handlers may have become slow meanwhile.
        self.wait_for_room().await
    }

    async fn wait_for_room(&mut self) -> usize {
        loop {
            let room = self.capacity().saturating_sub(self.claimed.len());
            if room > 0 {
                return room;
            }
            self.join_next().await;
        }
    }

    fn capacity(&self) -> usize {
        let slots = self.shared.options.concurrency;
        slots + self.pace.ahead(slots)
    }

    /// Whether nothing runs any more.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.reap();
        self.claimed.is_empty()
    }

    fn reap(&mut self) {
        while let Some(ended) = self.claimed.try_join_next() {
            check(ended);
        }
    }

    /// With slots alone, the next claim waits until all are free; with tasks ahead, these keep the slots busy while it is under way.
    async fn gather(&mut self) {
        let slots = self.shared.options.concurrency;
        let ahead = self.pace.ahead(slots);
        let low = if ahead == 0 { 0 } else { (slots + ahead) / 2 };
        while self.claimed.len() > low {
            self.join_next().await;
        }
    }

    async fn all_ended(&mut self) {
        while !self.claimed.is_empty() {
            self.join_next().await;
        }
    }

    async fn join_next(&mut self) {
        if let Some(ended) = self.claimed.join_next().await {
            check(ended);
        }
    }

    /// Starts an attempt as soon as there is a slot; its result goes to the completer. Without a slot, or when the worker is asked to stop
    /// before there is one, the task goes back.
    pub(crate) fn start(&mut self, step_index: usize, task: ClaimedTask) {
        let span = attempt::span(&task);
        let shared = Arc::clone(&self.shared);
        let slots = Arc::clone(&self.slots);
        let pace = Arc::clone(&self.pace);
        let busy = self.busy.clone();
        let finished = self.finished.clone();
        let returned = self.returned.clone();
        let run = async move {
            let Some(slot) = slot(&shared, slots, &pace).await else {
                give_back(&returned, task);
                return;
            };
            let busy = busy.enter();
            let started = Instant::now();
            let result = attempt::run(&shared, step_index, task).await;
            pace.handler_took(started.elapsed());
            // Before the result is sent: who receives it must not wait for a handler that has ended.
            drop(busy);
            drop(slot);
            if finished.send(result).await.is_err() {
                error!(
                    "the attempt's result could not be recorded; stall recovery will repeat the task"
                );
            }
        };
        self.claimed.spawn(run.instrument(span));
    }

    /// Puts tasks that were not started back into their queue; no attempt is counted.
    pub(crate) fn give_back(&self, tasks: Vec<ClaimedTask>) {
        for task in tasks {
            give_back(&self.returned, task);
        }
    }

    /// Lets running attempts end until the deadline, then drops those that still run.
    pub(crate) async fn drain(mut self, deadline: Instant) {
        if timeout_at(deadline, self.all_ended()).await.is_err() {
            warn!(
                tasks = self.claimed.len(),
                "handlers still ran at the end of the shutdown timeout and were dropped; stall recovery will repeat their tasks"
            );
            self.claimed.abort_all();
            // A handler that blocks its thread can't be dropped before it awaits, and must not hold the shutdown up.
            if timeout(ABORT, self.all_ended()).await.is_err() {
                warn!(
                    tasks = self.claimed.len(),
                    "handlers block their threads and could not be dropped; use `tokio::task::spawn_blocking` in them"
                );
            }
        }
    }
}

async fn slot(shared: &Shared, slots: Arc<Semaphore>, pace: &Pace) -> Option<OwnedSemaphorePermit> {
    let slot = timeout(PATIENCE, slots.acquire_owned());
    match shared.stop.unless_requested(slot).await? {
        // The semaphore is never closed.
        Ok(slot) => slot.ok(),
        Err(_elapsed) => {
            pace.waited_in_vain(PATIENCE);
            None
        }
    }
}

fn give_back(returned: &mpsc::UnboundedSender<ClaimedTask>, task: ClaimedTask) {
    if returned.send(task).is_err() {
        error!("a claimed task could not be given back; stall recovery will repeat it");
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

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
