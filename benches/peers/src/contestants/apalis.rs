//! `apalis-postgres`: a row for each job, fetched and acknowledged in batches.

use ::apalis::prelude::*;
use apalis_postgres::{Config, PostgresStorage};
use futures_util::stream;
use sqlx::PgPool;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{Contestant, Terms};
use crate::{Result, work};

/// Jobs added by one statement.
const CHUNK: u64 = 1_000;
const QUEUE: &str = "jobs";

async fn handle(_job: u64) -> std::result::Result<(), BoxDynError> {
    work::handle();
    Ok(())
}

/// The number of jobs that it fetches at a time.
#[derive(Debug)]
pub(crate) struct Apalis {
    batch: usize,
}

impl Apalis {
    pub(crate) fn batch_of(batch: usize) -> Self {
        Self { batch }
    }

    fn storage(&self, pool: &PgPool) -> PostgresStorage<u64> {
        let config = Config::default()
            .queue(QUEUE)
            .batch_size(self.batch)
            .lock_tasks(false);
        PostgresStorage::new(pool).with_config(config)
    }
}

/// Its worker's task, and how to end it.
#[derive(Debug)]
pub(crate) struct Running {
    pool: PgPool,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::result::Result<(), WorkerError>>,
}

impl Contestant for Apalis {
    type Ready = (PgPool, u16);
    type Worker = Running;

    const IS_LEFT: &str = "select exists (select from apalis.jobs where status <> 'Done')";
    const ENDED: Option<&str> = Some("select count(*) from apalis.jobs where status = 'Done'");

    async fn queue(&self, terms: &Terms<'_>) -> Result<()> {
        let pool = terms.database.pool().await?;
        PostgresStorage::setup(&pool).await?;
        let mut storage = self.storage(&pool);
        let jobs = u64::from(terms.jobs);
        let mut first = 0;
        while first < jobs {
            let end = jobs.min(first + CHUNK);
            storage.push_stream(&mut stream::iter(first..end)).await?;
            first = end;
        }
        pool.close().await;
        Ok(())
    }

    async fn prepare(&self, terms: &Terms<'_>) -> Result<Self::Ready> {
        Ok((terms.database.pool().await?, terms.concurrency))
    }

    async fn start(&self, (pool, concurrency): Self::Ready) -> Result<Self::Worker> {
        let worker = WorkerBuilder::new("worker")
            .backend(self.storage(&pool))
            .concurrency(concurrency.into())
            .parallelize(tokio::spawn)
            .build(handle);
        let (stop, stopped) = oneshot::channel::<()>();
        let until = async move {
            // Whether it was sent or dropped, it is time to end.
            stopped.await.ok();
            Ok::<(), WorkerError>(())
        };
        let task = tokio::spawn(worker.run_until(until));
        Ok(Running { pool, stop, task })
    }

    async fn stop(&self, running: Self::Worker) -> Result<()> {
        drop(running.stop);
        running.task.await??;
        running.pool.close().await;
        Ok(())
    }
}
