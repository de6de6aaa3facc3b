//! A worker that runs in the background.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::{
    WorkerError,
    serve::{Shared, serve},
    shutdown::Stop,
};

/// A worker that was started with [`FlowWorker::start`](super::FlowWorker::start).
///
/// Dropping the handle asks the worker to shut down gracefully and does not wait for it: it goes on in the background for as long as its
/// runtime lives. Wait with [`join`](Self::join) before the program ends, or tasks that still run are repeated by stall recovery.
#[derive(Debug)]
pub struct WorkerHandle {
    worker_id: Uuid,
    stop: Stop,
    stopped: CancellationToken,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl WorkerHandle {
    pub(crate) fn spawn(shared: Arc<Shared>, span: Span) -> Self {
        let stopped = CancellationToken::new();
        let on_end = stopped.clone().drop_guard();
        Self {
            worker_id: shared.worker_id,
            stop: shared.stop.clone(),
            stopped,
            task: tokio::spawn(
                async move {
                    let _on_end = on_end;
                    serve(shared).await
                }
                .instrument(span),
            ),
        }
    }

    /// The id of the worker's row; a new one at every start.
    pub fn worker_id(&self) -> Uuid {
        self.worker_id
    }

    /// Asks the worker to shut down: it claims nothing more, and its handlers may end within the shutdown timeout.
    pub fn shutdown(&self) {
        self.stop.request();
    }

    /// [Asks](Self::shutdown) the worker to shut down and [waits](Self::join) until it has.
    ///
    /// # Errors
    ///
    /// Why the worker stopped, if it had stopped before it was asked to.
    pub async fn stop(self) -> Result<(), WorkerError> {
        self.shutdown();
        self.join().await
    }

    /// Resolves when the worker has stopped, for whatever reason; [`join`](Self::join) tells the reason.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// Waits until the worker has stopped. Does not ask it to: see [`shutdown`](Self::shutdown).
    ///
    /// # Errors
    ///
    /// Why the worker stopped, if nobody asked it to.
    pub async fn join(mut self) -> Result<(), WorkerError> {
        (&mut self.task)
            .await
            .unwrap_or_else(|error| Err(WorkerError::Task(error)))
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.stop.request();
    }
}
