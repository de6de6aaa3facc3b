//! `graphile_worker`: a row for each job, deleted when it has ended.

use std::{sync::Arc, time::Duration};

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, Worker,
    WorkerContext, WorkerOptions,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::task::JoinHandle;

use super::{Contestant, Terms};
use crate::{Result, work::handle};

/// Jobs added by one statement.
const CHUNK: usize = 1_000;

#[derive(Debug, Serialize, Deserialize)]
struct Job(u64);

impl TaskHandler for Job {
    const IDENTIFIER: &'static str = "job";

    async fn run(self, _context: WorkerContext) -> impl IntoTaskHandlerResult {
        handle();
        Ok::<(), String>(())
    }
}

/// The way in which its slots get jobs.
#[derive(Debug)]
enum Fetch {
    /// One for each slot and signal. Signals are notifications of new jobs and the ticks of this
    /// interval; where all jobs are queued already there are ticks only, so its default of a second
    /// would make `concurrency` jobs a second.
    EachTick(Duration),
    /// A hundred at a time, for all slots.
    LocalQueue,
}

/// The way in which it fetches and completes.
#[derive(Debug)]
pub(crate) struct Graphile {
    fetch: Fetch,
    completion_delay: Option<Duration>,
}

impl Graphile {
    pub(crate) fn polling() -> Self {
        Self {
            fetch: Fetch::EachTick(Duration::from_millis(1)),
            completion_delay: None,
        }
    }

    pub(crate) fn local_queue() -> Self {
        Self {
            fetch: Fetch::LocalQueue,
            completion_delay: None,
        }
    }

    /// Returns the configuration that its guide calls a throughput-oriented worker.
    pub(crate) fn batched() -> Self {
        Self {
            completion_delay: Some(Duration::from_millis(5)),
            ..Self::local_queue()
        }
    }

    fn options(&self, pool: &PgPool, concurrency: u16) -> WorkerOptions {
        let mut options = WorkerOptions::default()
            .pg_pool(pool.clone())
            .concurrency(concurrency.into())
            .listen_os_shutdown_signals(false)
            .define_job::<Job>();
        options = match self.fetch {
            Fetch::EachTick(interval) => options.poll_interval(interval),
            Fetch::LocalQueue => options.local_queue(LocalQueueConfig::default()),
        };
        if let Some(delay) = self.completion_delay {
            options = options
                .complete_job_batch_delay(delay)
                .fail_job_batch_delay(delay);
        }
        options
    }
}

/// Its worker, and the task that it runs in.
pub(crate) struct Running {
    pool: PgPool,
    worker: Arc<Worker>,
    task: JoinHandle<Result<()>>,
}

impl Contestant for Graphile {
    type Ready = (PgPool, Arc<Worker>);
    type Worker = Running;

    const IS_LEFT: &str = "select exists (select from graphile_worker._private_jobs)";
    const ENDED: Option<&str> = None;

    async fn queue(&self, terms: &Terms<'_>) -> Result<()> {
        let pool = terms.database.pool().await?;
        let utils = self.options(&pool, 1).init().await?.create_utils();
        let jobs = (0..terms.jobs)
            .map(|job| {
                Ok(RawJobSpec {
                    identifier: Job::IDENTIFIER.to_owned(),
                    payload: serde_json::to_value(Job(job.into()))?,
                    spec: JobSpec::default(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        for chunk in jobs.chunks(CHUNK) {
            utils.add_raw_jobs(chunk).await?;
        }
        pool.close().await;
        Ok(())
    }

    async fn prepare(&self, terms: &Terms<'_>) -> Result<Self::Ready> {
        let pool = terms.database.pool().await?;
        let worker = self.options(&pool, terms.concurrency).init().await?;
        Ok((pool, Arc::new(worker)))
    }

    async fn start(&self, (pool, worker): Self::Ready) -> Result<Self::Worker> {
        let task = tokio::spawn({
            let worker = Arc::clone(&worker);
            async move { Ok(worker.run().await?) }
        });
        Ok(Running { pool, worker, task })
    }

    async fn stop(&self, running: Self::Worker) -> Result<()> {
        running.worker.request_shutdown();
        running.task.await??;
        running.pool.close().await;
        Ok(())
    }
}
