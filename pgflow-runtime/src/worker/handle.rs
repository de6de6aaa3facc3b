//! Workers that run in the background.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Health, HealthCheck, WorkerError, shutdown::Stop};

/// Workers that serve in a task of their own. Dropping it asks them to stop.
#[derive(Debug)]
pub(crate) struct Running {
    worker_ids: Vec<Uuid>,
    health: HealthCheck,
    stop: Stop,
    stopped: CancellationToken,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl Running {
    pub(crate) fn spawn(
        worker_ids: Vec<Uuid>,
        health: HealthCheck,
        stop: Stop,
        work: impl Future<Output = Result<(), WorkerError>> + Send + 'static,
    ) -> Self {
        let stopped = CancellationToken::new();
        let on_end = stopped.clone().drop_guard();
        Self {
            worker_ids,
            health,
            stop,
            stopped,
            task: tokio::spawn(async move {
                let _on_end = on_end;
                work.await
            }),
        }
    }

    async fn join(mut self) -> Result<(), WorkerError> {
        (&mut self.task)
            .await
            .unwrap_or_else(|error| Err(WorkerError::Task(error)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
    }
}

/// A worker that was started with [`FlowWorker::start`](super::FlowWorker::start) or
/// [`StepWorker::start`](super::StepWorker::start).
///
/// Dropping the handle asks the worker to shut down gracefully and does not wait for it: the worker
/// continues in the background while its runtime lives. Wait with [`join`](Self::join) before the
/// program ends, or recovery repeats its running tasks.
#[derive(Debug)]
pub struct WorkerHandle {
    running: Running,
}

impl WorkerHandle {
    /// Of a group with exactly one worker.
    pub(crate) fn new(running: Running) -> Self {
        Self { running }
    }

    /// The id of the worker's row; a new one at every start.
    pub fn worker_id(&self) -> Uuid {
        self.running.worker_ids[0]
    }

    /// Returns whether the worker is live and ready now.
    pub fn health(&self) -> Health {
        self.running.health.check()
    }

    /// Asks the worker to shut down: it claims nothing more, and its handlers may end within the
    /// shutdown timeout.
    pub fn shutdown(&self) {
        self.running.stop.request();
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

    /// Resolves when the worker has stopped, for any reason; [`join`](Self::join) returns the
    /// reason.
    pub async fn stopped(&self) {
        self.running.stopped.cancelled().await;
    }

    /// Waits until the worker has stopped. Does not ask it to: see [`shutdown`](Self::shutdown).
    ///
    /// # Errors
    ///
    /// The reason why the worker stopped without a request.
    pub async fn join(self) -> Result<(), WorkerError> {
        self.running.join().await
    }
}

/// Workers that were started with [`Workers::start`](super::Workers::start) or
/// [`StepWorkers::start`](super::StepWorkers::start).
///
/// Dropping the handle asks all of them to shut down gracefully and does not wait for them, as that
/// of a [`WorkerHandle`] does.
#[derive(Debug)]
pub struct WorkersHandle {
    running: Running,
}

impl WorkersHandle {
    pub(crate) fn new(running: Running) -> Self {
        Self { running }
    }

    /// The ids of the rows of the workers that started, in their order. A worker that returns after
    /// its function was out of service has another one: [`health`](Self::health) reports the
    /// current ids.
    pub fn worker_ids(&self) -> &[Uuid] {
        &self.running.worker_ids
    }

    /// Returns whether the workers are live and ready now.
    pub fn health(&self) -> Health {
        self.running.health.check()
    }

    /// Returns the check behind [`health`](Self::health), to pass on: it outlives the handle.
    pub fn health_check(&self) -> HealthCheck {
        self.running.health.clone()
    }

    /// Asks all workers to shut down: they claim nothing more, and their handlers may end within
    /// their shutdown timeouts.
    pub fn shutdown(&self) {
        self.running.stop.request();
    }

    /// [Asks](Self::shutdown) all workers to shut down and [waits](Self::join) until they have.
    ///
    /// # Errors
    ///
    /// Why the first worker stopped that had stopped with an error and did not come back.
    pub async fn stop(self) -> Result<(), WorkerError> {
        self.shutdown();
        self.join().await
    }

    /// Resolves when all workers have stopped, for any reason; [`join`](Self::join) returns the
    /// reason.
    pub async fn stopped(&self) {
        self.running.stopped.cancelled().await;
    }

    /// Waits until all workers have stopped. Does not ask them to: see
    /// [`shutdown`](Self::shutdown).
    ///
    /// # Errors
    ///
    /// Why the first worker stopped that stopped with an error and did not come back. The others
    /// continued, and have ended, too.
    pub async fn join(self) -> Result<(), WorkerError> {
        self.running.join().await
    }
}
