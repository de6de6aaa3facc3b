//! The worker rows in whose name a call claims: one for each queue of the flow.

use std::{error::Error, time::Duration};

use pgflow_definition::QueueMode;
use sqlx::PgPool;
use tokio::runtime::Handle;
use tracing::warn;
use uuid::Uuid;

use super::RunToEndError;
use crate::{
    flow::{Flow, build_of},
    sql::{
        CallError,
        heartbeat::{Heartbeat, worker_heartbeats},
        testing::{FUNCTION, live_workers},
        worker::mark_worker_stopped,
    },
    startup::{self, StartupError, Target},
    worker::{Stop, options::Settings},
};

/// A killed test program counts as live for 6 s; a longer wait for one is never needed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// One queue, and the worker that claims from it.
#[derive(Debug)]
pub(super) struct QueueWorker {
    pub(super) queue_name: String,
    /// The only step of the queue; none for the one queue of a flow.
    pub(super) step_slug: Option<&'static str>,
    worker_id: Uuid,
}

impl QueueWorker {
    pub(super) fn id(&self) -> Uuid {
        self.worker_id
    }
}

/// Registered until they are stopped, or dropped.
#[derive(Debug)]
pub(super) struct TestWorkers {
    pool: PgPool,
    pub(super) concurrency: usize,
    queues: Vec<QueueWorker>,
}

impl TestWorkers {
    /// Stores or verifies the definition, as the start of a worker does, and registers.
    pub(super) async fn register<F: Flow>(
        pool: &PgPool,
        concurrency: Option<usize>,
    ) -> Result<Self, RunToEndError> {
        refuse_live_workers::<F>(pool).await?;
        let steps: Vec<Option<usize>> = match F::DEFINITION.queue_mode {
            QueueMode::Flow => vec![None],
            QueueMode::Step => (0..F::DEFINITION.steps.len()).map(Some).collect(),
        };
        let options = Settings {
            concurrency,
            drain_timeout: Some(DRAIN_TIMEOUT),
            build: build_of::<F>().map(str::to_owned),
            ..Settings::default()
        };
        let options = options.options(|| FUNCTION.to_owned());
        let mut workers = Self {
            pool: pool.clone(),
            concurrency: options.concurrency,
            queues: Vec::with_capacity(steps.len()),
        };
        for step in steps {
            let target = Target {
                definition: F::DEFINITION,
                step,
            };
            let sibling = target.step.and(workers.queues.first());
            let sibling = sibling.map(QueueWorker::id);
            let stop = Stop::default();
            let registered = match startup::start(pool, target, &options, sibling, &stop).await {
                Ok(registered) => registered,
                Err(error) => {
                    workers.stop().await;
                    return Err(error.into());
                }
            };
            workers.queues.push(QueueWorker {
                queue_name: registered.queue_name,
                step_slug: target.step_slug(),
                worker_id: registered.worker_id,
            });
        }
        Ok(workers)
    }

    pub(super) fn queues(&self) -> &[QueueWorker] {
        &self.queues
    }

    /// Sends the heartbeats of the workers; returns the reason why the first of them has stopped,
    /// or should.
    pub(super) async fn beat(&self) -> Result<Option<String>, CallError> {
        let ids: Vec<Uuid> = self.queues.iter().map(QueueWorker::id).collect();
        let beats = worker_heartbeats(&self.pool, &ids).await?;
        let why = |id: Uuid| match beats.iter().find(|beat| beat.worker_id == id) {
            None => {
                Some("somebody removed the row of its worker, or marked it as stopped".to_owned())
            }
            Some(Heartbeat {
                is_deprecated: false,
                ..
            }) => None,
            Some(beat) => Some(format!(
                "its worker was told to stop ({})",
                beat.deprecated_reason
                    .as_deref()
                    .unwrap_or("no reason was given")
            )),
        };
        Ok(ids.into_iter().find_map(why))
    }

    pub(super) async fn stop(mut self) {
        mark_stopped(&self.pool, std::mem::take(&mut self.queues)).await;
    }
}

/// A call that was dropped half way can wait for nothing.
impl Drop for TestWorkers {
    fn drop(&mut self) {
        let queues = std::mem::take(&mut self.queues);
        if !queues.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            let pool = self.pool.clone();
            runtime.spawn(async move { mark_stopped(&pool, queues).await });
        }
    }
}

async fn mark_stopped(pool: &PgPool, queues: Vec<QueueWorker>) {
    for worker in queues {
        if let Err(error) = mark_worker_stopped(pool, worker.worker_id).await {
            warn!(
                worker_id = %worker.worker_id, error = &error as &dyn Error,
                "the worker of a test could not be marked as stopped, its heartbeat will be missed"
            );
        }
    }
}

/// Before the start, which in a local database asks workers of another definition to stop.
async fn refuse_live_workers<F: Flow>(pool: &PgPool) -> Result<(), RunToEndError> {
    let flow = F::DEFINITION.slug;
    let workers = match live_workers(pool, flow, FUNCTION).await {
        // Not migrated: the start, which comes next, says what to do.
        Err(CallError::Database(sqlx::Error::Database(error)))
            if matches!(error.code().as_deref(), Some("3F000" | "42P01" | "42703")) =>
        {
            Vec::new()
        }
        Err(CallError::Database(error)) if error.as_database_error().is_none() => {
            return Err(StartupError::Connect(error).into());
        }
        result => result.map_err(StartupError::from)?,
    };
    if workers.is_empty() {
        Ok(())
    } else {
        Err(RunToEndError::LiveWorkers { flow, workers })
    }
}
