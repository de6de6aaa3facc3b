//! `underway`: a task and an attempt for each step, one at a time for each worker.

use std::str::FromStr;

use ::underway::{Job, To, Worker};
use futures_util::future::try_join_all;
use sqlx_08::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::task::JoinSet;

use super::{Contestant, Terms};
use crate::{Result, work::handle};

/// Jobs added in one transaction.
const CHUNK: usize = 1_000;
/// Connections that each of its workers listens with, and holds as long as it runs.
const LISTENERS: u16 = 2;

type UnderwayJob = Job<u64, ()>;

/// A job of one step, or of three.
#[derive(Debug)]
pub(crate) struct Underway {
    has_three_steps: bool,
}

impl Underway {
    pub(crate) fn one_step() -> Self {
        Self {
            has_three_steps: false,
        }
    }

    pub(crate) fn three_steps() -> Self {
        Self {
            has_three_steps: true,
        }
    }

    async fn job(&self, pool: &PgPool) -> Result<UnderwayJob> {
        let job = if self.has_three_steps {
            Job::builder()
                .step(async |_context, job: u64| {
                    handle();
                    To::next(job)
                })
                .step(async |_context, job: u64| {
                    handle();
                    To::next(job)
                })
                .step(async |_context, _job: u64| {
                    handle();
                    To::done()
                })
                .name("three_steps")
                .pool(pool.clone())
                .build()
                .await?
        } else {
            Job::builder()
                .step(async |_context, _job: u64| {
                    handle();
                    To::done()
                })
                .name("one_step")
                .pool(pool.clone())
                .build()
                .await?
        };
        Ok(job)
    }
}

async fn pool(terms: &Terms<'_>, connections: u16) -> Result<PgPool> {
    let options =
        PgConnectOptions::from_str(terms.database.server_url())?.database(terms.database.name());
    let pool = PgPoolOptions::new()
        .max_connections(connections.into())
        .min_connections(connections.into())
        .connect_with(options)
        .await?;
    drop(try_join_all((0..connections).map(|_| pool.acquire())).await?);
    Ok(pool)
}

/// Its workers, and the tasks that they run in.
pub(crate) struct Running {
    pool: PgPool,
    worker: Worker<UnderwayJob>,
    tasks: JoinSet<Result<()>>,
}

impl Contestant for Underway {
    type Ready = (PgPool, UnderwayJob, u16);
    type Worker = Running;

    const IS_LEFT: &str = "select exists (select from underway.task where state <> 'succeeded')";
    const ENDED: Option<&str> =
        Some("select count(*) from underway.task where state = 'succeeded'");

    async fn queue(&self, terms: &Terms<'_>) -> Result<()> {
        let pool = pool(terms, terms.database.connections()).await?;
        ::underway::run_migrations(&pool).await?;
        let job = self.job(&pool).await?;
        let inputs: Vec<u64> = (0..u64::from(terms.jobs)).collect();
        for chunk in inputs.chunks(CHUNK) {
            let mut transaction = pool.begin().await?;
            for input in chunk {
                job.enqueue_using(&mut *transaction, input).await?;
            }
            transaction.commit().await?;
        }
        pool.close().await;
        Ok(())
    }

    async fn prepare(&self, terms: &Terms<'_>) -> Result<Self::Ready> {
        // Its listeners come on top, so that as many connections are left for work as the others
        // have.
        let listeners = LISTENERS * terms.concurrency;
        let pool = pool(terms, terms.database.connections() + listeners).await?;
        let job = self.job(&pool).await?;
        Ok((pool, job, terms.concurrency))
    }

    async fn start(&self, (pool, job, workers): Self::Ready) -> Result<Self::Worker> {
        // A worker starts one loop for each poll or notification; all jobs being queued already, it
        // would stay alone for a minute.
        let mut worker = job.worker();
        worker.set_concurrency_limit(1);
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let worker = worker.clone();
            tasks.spawn(async move { Ok(worker.run().await?) });
        }
        Ok(Running {
            pool,
            worker,
            tasks,
        })
    }

    async fn stop(&self, mut running: Self::Worker) -> Result<()> {
        running.worker.shutdown();
        while let Some(ended) = running.tasks.join_next().await {
            ended??;
        }
        running.pool.close().await;
        Ok(())
    }
}
