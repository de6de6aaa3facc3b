//! Runs attempts side by side, up to the worker's concurrency. Tasks that were claimed ahead wait
//! for a slot, but not for long.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    thread::panicking,
    time::Duration,
};

use futures_util::future::{MaybeDone, maybe_done};
use tokio::{
    sync::{
        AcquireError, OwnedSemaphorePermit, Semaphore,
        mpsc::{self, error::SendError},
    },
    task::{JoinError, JoinSet, unconstrained},
    time::{Instant, timeout, timeout_at},
};
use tracing::{Instrument, error, warn};

use super::{
    Shared,
    attempt::{self, Finished},
    pace::Pace,
};
use crate::{
    contained,
    printable::printable,
    sql::{claim::ClaimedTask, release::Start},
};

/// The time for which a free slot waits for others.
const GATHER: Duration = Duration::from_millis(2);
/// The time for which a task that was claimed ahead waits for a slot before it returns to the
/// queue: other workers may have one.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// The time for dropped handlers to end.
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
    returned: mpsc::UnboundedSender<Start>,
}

impl Executor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        busy: Busy,
        finished: mpsc::Sender<Finished>,
        returned: mpsc::UnboundedSender<Start>,
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

    /// Waits until a slot is free; returns how many tasks there is room for.
    ///
    /// Handlers that were claimed together often end together. While most slots are in use, the
    /// first that becomes free waits a moment for the others, so that one claim fills them all.
    /// Only when all have ended is there room for tasks ahead as well: one that still runs may be a
    /// slow one.
    pub(crate) async fn room(&mut self) -> usize {
        let slots = self.shared.options.concurrency;
        self.reap();
        if self.claimed.len() > slots / 2 {
            while self.claimed.len() >= slots {
                self.join_next().await;
            }
            // Either way there is a slot.
            let _ = timeout(GATHER, self.all_ended()).await;
        }
        let free = slots - self.claimed.len();
        if free == slots {
            slots + self.pace.ahead(slots)
        } else {
            free
        }
    }

    /// Returns whether nothing runs any more.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.reap();
        self.claimed.is_empty()
    }

    fn reap(&mut self) {
        while let Some(ended) = self.claimed.try_join_next() {
            check(ended);
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

    /// Starts an attempt as soon as there is a slot; its result goes to the completer. Without a
    /// slot, or when the worker is asked to stop before there is one, the task goes back.
    pub(crate) fn start(&mut self, step_index: usize, task: ClaimedTask) {
        let span = attempt::span(&task);
        let shared = Arc::clone(&self.shared);
        let turn = line_up(Arc::clone(&self.slots));
        let pace = Arc::clone(&self.pace);
        let busy = self.busy.clone();
        let finished = self.finished.clone();
        let held = Held::new(&task, &self.returned);
        let run = async move {
            let slot = slot(&shared, turn, &pace).await;
            let Some(slot) = slot.filter(|_| !shared.attempts.is_lease_over()) else {
                return;
            };
            let busy = busy.enter();
            let started = Instant::now();
            let mut result = attempt::run(&shared, step_index, task).await;
            held.keep();
            pace.handler_took(started.elapsed());
            // Before the result is sent: who receives it must not wait for a handler that has
            // ended.
            drop(busy);
            if let Ok(output) = &result.result {
                // In its slot: what could not be recorded yet bounds what runs.
                result.reserved = shared.budget.reserve(output.get().len()).await;
            }
            drop(slot);
            if let Err(SendError(Finished { key, .. })) = finished.send(result).await {
                error!(
                    run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
                    "the attempt's result could not be recorded; stall recovery will repeat the task"
                );
            }
        };
        self.claimed.spawn(run.instrument(span));
    }

    /// Puts tasks that were not started back into their queue; no attempt is counted.
    pub(crate) fn give_back(&self, tasks: Vec<ClaimedTask>) {
        for task in tasks {
            drop(Held::new(&task, &self.returned));
        }
    }

    /// Lets running attempts end until the deadline, then drops those that still run: their tasks
    /// go back.
    pub(crate) async fn drain(mut self, deadline: Instant) {
        if timeout_at(deadline, self.all_ended()).await.is_err() {
            warn!(
                tasks = self.claimed.len(),
                "handlers still ran at the end of the shutdown timeout and are dropped, their tasks go back into the queue"
            );
            self.claimed.abort_all();
            // A handler that blocks its thread can't be dropped before it awaits, and must not hold
            // the shutdown up.
            if timeout(ABORT, self.all_ended()).await.is_err() {
                warn!(
                    tasks = self.claimed.len(),
                    "handlers block their threads and could not be dropped; use `tokio::task::spawn_blocking` in them"
                );
            }
        }
    }
}

/// A place in the line for a slot.
type Turn<F> = Pin<Box<MaybeDone<F>>>;

/// Takes the next place in the line, before the task is spawned: spawned tasks begin in any order,
/// and slots are for those first that came first.
fn line_up(
    slots: Arc<Semaphore>,
) -> Turn<impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send> {
    // Unconstrained: a budget that is used up would leave it out of the line.
    let mut turn = Box::pin(maybe_done(unconstrained(slots.acquire_owned())));
    let _ = turn.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    turn
}

async fn slot(
    shared: &Shared,
    mut turn: Turn<impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>>>,
    pace: &Pace,
) -> Option<OwnedSemaphorePermit> {
    let slot = timeout(PATIENCE, turn.as_mut());
    match shared.stop.unless_requested(slot).await? {
        // The semaphore is never closed.
        Ok(()) => turn.as_mut().take_output()?.ok(),
        Err(_elapsed) => {
            pace.waited_in_vain(PATIENCE);
            None
        }
    }
}

/// A task that this worker holds. It goes back when this is dropped, also by an abort of its
/// attempt.
#[derive(Debug)]
struct Held {
    start: Option<Start>,
    returned: mpsc::UnboundedSender<Start>,
}

impl Held {
    fn new(task: &ClaimedTask, returned: &mpsc::UnboundedSender<Start>) -> Self {
        Self {
            start: Some(task.into()),
            returned: returned.clone(),
        }
    }

    /// The attempt has ended and its result counts.
    fn keep(mut self) {
        self.start = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A panic is no reason to run the task again as if nothing had happened.
        if let Some(start) = self.start.take().filter(|_| !panicking())
            && let Err(SendError(start)) = self.returned.send(start)
        {
            warn!(
                run_id = %start.run_id, step = start.step_slug, task_index = start.task_index, attempt = start.attempt,
                "a claimed task could not be given back; recovery will repeat it"
            );
        }
    }
}

fn check(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        let panic = contained::message(error.into_panic());
        error!(panic = %printable(&panic), "an attempt ended without a result; stall recovery will repeat the task");
    }
}

/// The number of handlers that run at the moment.
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
