//! Records what attempts returned: outputs in batches, failures one by one.

use std::{mem, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use tokio::{
    select,
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{Instant, sleep, sleep_until},
};
use tracing::{Instrument, Span, error, warn};

use super::{
    attempt::Finished,
    budget::Reserved,
    executor::Busy,
    recorder::{Calls, Recorder},
};
use crate::{
    flow::error_text,
    printable::printable,
    sql::{complete::AttemptKey, error::ErrorClass, retry::Backoff},
};

const MOST_ITEMS: usize = 100;
/// Keeps a batch of large outputs far below what one statement can carry.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// The time for which the first output of a batch waits for others, when handlers are about to
/// return some.
const LINGER: Duration = Duration::from_millis(5);
/// The number of full batches that are recorded concurrently, also while the commit of one is
/// written. A batch that is not full waits for the others: large ones cost less per output.
const MOST_CALLS: usize = 3;
/// The number of single results that may wait for their turn before the worker accepts no more.
const MOST_ALONE: usize = 100;

pub(crate) struct Completer<C> {
    recorder: Arc<Recorder<C>>,
    finished: mpsc::Receiver<Finished>,
    busy: Busy,
    batch: Batch,
    /// Until when the batch waits for others, unless it is full before.
    linger_until: Instant,
    /// The batches that are being recorded. Each returns the outputs that have to be recorded one
    /// by one.
    calls: JoinSet<Vec<Output>>,
    alone: JoinSet<()>,
}

/// An output that waits to be recorded.
#[derive(Debug)]
struct Output {
    key: AttemptKey,
    current_until: Instant,
    max_attempts: i32,
    span: Span,
    json: Box<RawValue>,
    reserved: Reserved,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            key: output.key,
            current_until: output.current_until,
            max_attempts: output.max_attempts,
            span: output.span,
            result: Ok(output.json),
            reserved: output.reserved,
        }
    }
}

#[derive(Debug, Default)]
struct Batch {
    outputs: Vec<Output>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, output: Output) {
        self.bytes += output.json.get().len();
        self.outputs.push(output);
    }

    fn is_full(&self) -> bool {
        self.outputs.len() >= MOST_ITEMS || self.bytes >= MOST_BYTES
    }
}

impl<C: Calls> Completer<C> {
    pub(crate) fn new(
        recorder: Arc<Recorder<C>>,
        finished: mpsc::Receiver<Finished>,
        busy: Busy,
    ) -> Self {
        Self {
            recorder,
            finished,
            busy,
            batch: Batch::default(),
            linger_until: Instant::now(),
            calls: JoinSet::new(),
            alone: JoinSet::new(),
        }
    }

    /// Runs until the executor has ended and everything is recorded.
    pub(crate) async fn run(mut self) {
        let mut is_open = true;
        while is_open || !self.batch.outputs.is_empty() || !self.calls.is_empty() {
            while self.has_room()
                && let Ok(finished) = self.finished.try_recv()
            {
                self.accept(finished).await;
            }
            if self.is_due(is_open) {
                let Batch { outputs, .. } = mem::take(&mut self.batch);
                let recording = record(Arc::clone(&self.recorder), outputs);
                self.calls.spawn(recording.in_current_span());
                continue;
            }
            let is_lingering = self.calls.is_empty() && !self.batch.outputs.is_empty();
            select! {
                Some(ended) = self.calls.join_next() => self.call_ended(ended).await,
                finished = self.finished.recv(), if is_open && self.has_room() => match finished {
                    Some(finished) => self.accept(finished).await,
                    None => is_open = false,
                },
                () = sleep_until(self.linger_until), if is_lingering => {}
            }
        }
        while self.alone.join_next().await.is_some() {}
    }

    /// Returns whether results are taken. When they could not be recorded they stay where they are,
    /// and hold up those who claim more.
    fn has_room(&self) -> bool {
        !self.batch.is_full() && self.calls.len() < MOST_CALLS
    }

    /// Returns whether the batch is to be recorded now.
    fn is_due(&self, is_open: bool) -> bool {
        if self.batch.is_full() {
            return self.calls.len() < MOST_CALLS;
        }
        // Nobody to wait for: a single task on an idle worker is recorded at once.
        !self.batch.outputs.is_empty()
            && self.calls.is_empty()
            && (!is_open || self.busy.is_idle() || self.linger_until <= Instant::now())
    }

    async fn accept(&mut self, finished: Finished) {
        self.recorder.accepted();
        match finished.result {
            Ok(json) => {
                if self.batch.outputs.is_empty() {
                    // What gathered during a call goes with the next one.
                    let linger = if self.calls.is_empty() {
                        LINGER
                    } else {
                        Duration::ZERO
                    };
                    self.linger_until = Instant::now() + linger;
                }
                self.batch.push(Output {
                    key: finished.key,
                    current_until: finished.current_until,
                    max_attempts: finished.max_attempts,
                    span: finished.span,
                    json,
                    reserved: finished.reserved,
                });
            }
            Err(_) => self.record_alone(finished).await,
        }
    }

    async fn call_ended(&mut self, ended: Result<Vec<Output>, JoinError>) {
        match ended {
            Ok(refused) => {
                for output in refused {
                    // Accepted already.
                    self.record_alone(output.into()).await;
                }
            }
            Err(error) => {
                error!(%error, "outputs were not recorded; stall recovery will repeat the tasks");
            }
        }
    }

    async fn record_alone(&mut self, finished: Finished) {
        while self.alone.try_join_next().is_some() {}
        while self.alone.len() >= MOST_ALONE {
            self.alone.join_next().await;
        }
        let recorder = Arc::clone(&self.recorder);
        self.alone
            .spawn(async move { recorder.insist(finished).await }.in_current_span());
    }
}

/// Records a batch, however long a database outage lasts. Returns the outputs of a batch that the
/// database refuses, for whatever reason: a single output may be the cause, and recorded alone each
/// has its own result.
async fn record<C: Calls>(recorder: Arc<Recorder<C>>, outputs: Vec<Output>) -> Vec<Output> {
    let mut backoff = Backoff::database();
    let mut was_of_one = false;
    let items: Vec<_> = outputs
        .iter()
        .map(|output| (&output.key, &*output.json))
        .collect();
    while let Err(error) = recorder.complete_batch(&items).await {
        let may_be_of_one = error.may_be_of_one_output();
        match error.class() {
            ErrorClass::PoolClosed => {
                for output in &outputs {
                    let key = &output.key;
                    error!(
                        run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
                        error = printable(&error_text(&error)).as_ref(),
                        "an output could not be recorded; stall recovery will repeat the task"
                    );
                }
                break;
            }
            // A server that does not answer may be away. One that does not answer twice may be at
            // work.
            ErrorClass::Transient if !(may_be_of_one && was_of_one) => {
                let delay = backoff.next_delay();
                warn!(
                    tasks = outputs.len(),
                    ?delay,
                    error = printable(&error_text(&error)).as_ref(),
                    "outputs could not be recorded, they are tried again"
                );
                sleep(delay).await;
            }
            ErrorClass::Transient
            | ErrorClass::Limit
            | ErrorClass::Data
            | ErrorClass::Gone
            | ErrorClass::Other => {
                warn!(
                    tasks = outputs.len(),
                    error = printable(&error_text(&error)).as_ref(),
                    "a batch was refused, its outputs are recorded one by one"
                );
                return outputs;
            }
        }
        was_of_one = may_be_of_one;
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
