//! Records what attempts returned: outputs in batches, failures one by one.

use std::{error::Error, mem, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};
use tracing::{Instrument, Span, error, warn};

use super::{
    attempt::Finished,
    executor::Busy,
    recorder::{Calls, Recorder},
};
use crate::sql::{complete::AttemptKey, error::ErrorClass, retry::Backoff};

const MOST_ITEMS: usize = 100;
/// Keeps a batch of large outputs far below what one statement can carry.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// How long the first output of a batch waits for others, when handlers are about to return some.
const LINGER: Duration = Duration::from_millis(5);
/// How many single results may wait for their turn before no more are taken.
const MOST_ALONE: usize = 100;

pub(crate) struct Completer<C> {
    recorder: Arc<Recorder<C>>,
    finished: mpsc::Receiver<Finished>,
    busy: Busy,
    batch: Batch,
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
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            key: output.key,
            current_until: output.current_until,
            max_attempts: output.max_attempts,
            span: output.span,
            result: Ok(output.json),
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
            alone: JoinSet::new(),
        }
    }

    /// Runs until the executor is gone and everything is recorded.
    pub(crate) async fn run(mut self) {
        while self.gather().await {
            let batch = mem::take(&mut self.batch);
            self.record(batch.outputs).await;
        }
        while self.alone.join_next().await.is_some() {}
    }

    /// Fills the batch with what gathered while the last one was recorded, or else with what comes next; false when nothing can
    /// come any more.
    async fn gather(&mut self) -> bool {
        while !self.batch.is_full()
            && let Ok(finished) = self.finished.try_recv()
        {
            self.accept(finished).await;
        }
        if !self.batch.outputs.is_empty() {
            return true;
        }
        while self.batch.outputs.is_empty() {
            match self.finished.recv().await {
                Some(finished) => self.accept(finished).await,
                None => return false,
            }
        }
        let deadline = Instant::now() + LINGER;
        while !self.batch.is_full() {
            let next = match self.finished.try_recv() {
                Ok(finished) => Some(finished),
                // Nobody to wait for: a single task on an idle worker is recorded at once.
                Err(_) if self.busy.is_idle() => None,
                Err(_) => timeout_at(deadline, self.finished.recv())
                    .await
                    .unwrap_or_default(),
            };
            match next {
                Some(finished) => self.accept(finished).await,
                None => break,
            }
        }
        true
    }

    async fn accept(&mut self, finished: Finished) {
        match finished.result {
            Ok(json) => self.batch.push(Output {
                key: finished.key,
                current_until: finished.current_until,
                max_attempts: finished.max_attempts,
                span: finished.span,
                json,
            }),
            Err(_) => self.record_alone(finished).await,
        }
    }

    /// Records a batch, however long the database is away; one that the database refuses is taken apart.
    async fn record(&mut self, outputs: Vec<Output>) {
        let mut backoff = Backoff::database();
        let items: Vec<_> = outputs
            .iter()
            .map(|output| (&output.key, &*output.json))
            .collect();
        while let Err(error) = self.recorder.complete(&items).await {
            match error.class() {
                ErrorClass::Transient => {
                    let delay = backoff.next_delay();
                    warn!(
                        tasks = outputs.len(),
                        ?delay,
                        error = &error as &dyn Error,
                        "outputs could not be recorded, they are tried again"
                    );
                    sleep(delay).await;
                }
                ErrorClass::PoolClosed => {
                    error!(
                        tasks = outputs.len(),
                        error = &error as &dyn Error,
                        "outputs could not be recorded; stall recovery will repeat the tasks"
                    );
                    return;
                }
                ErrorClass::Data | ErrorClass::Gone | ErrorClass::Other => {
                    warn!(
                        tasks = outputs.len(),
                        error = &error as &dyn Error,
                        "a batch was refused, its outputs are recorded one by one"
                    );
                    for output in outputs {
                        self.record_alone(output.into()).await;
                    }
                    return;
                }
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

#[cfg(test)]
mod tests;
