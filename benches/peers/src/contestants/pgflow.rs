//! Ours: a run, its steps and its tasks, in one queue for the flow.

use futures_util::{StreamExt, TryStreamExt, stream};
use pgflow::{OneQueue, prelude::*, worker::WorkerHandle};
use sqlx::PgPool;

use super::{Contestant, Terms};
use crate::Result;

/// A flow, and how many of its tasks run at a time.
#[derive(Debug)]
pub(crate) struct Pgflow<F: Flow> {
    input: fn(u64) -> F::Input,
    concurrency: Option<usize>,
}

impl<F: Flow> Pgflow<F> {
    pub(crate) fn new(input: fn(u64) -> F::Input) -> Self {
        Self {
            input,
            concurrency: None,
        }
    }

    /// Whatever was asked for.
    pub(crate) fn concurrency(mut self, tasks: usize) -> Self {
        self.concurrency = Some(tasks);
        self
    }
}

impl<F> Contestant for Pgflow<F>
where
    F: Flow<State = (), Queues = OneQueue>,
{
    type Ready = (PgPool, FlowWorker<F>);
    type Worker = (PgPool, WorkerHandle);

    const IS_LEFT: &str = "select exists (select from pgflow.runs where status = 'started')";
    const ENDED: Option<&str> =
        Some("select count(*) from pgflow.step_tasks where status = 'completed'");

    async fn queue(&self, terms: &Terms<'_>) -> Result<()> {
        let pool = terms.database.pool().await?;
        pgflow::migrate(&pool).await?;
        // Stores the definition, without which no run starts.
        FlowWorker::<F>::new().start(&pool).await?.stop().await?;
        let client = Client::new(pool.clone());
        stream::iter(0..u64::from(terms.jobs))
            .map(|job| {
                let client = &client;
                async move { client.start::<F>(&(self.input)(job)).await }
            })
            .buffer_unordered(terms.database.connections().into())
            .try_for_each(async |_| Ok(()))
            .await?;
        pool.close().await;
        Ok(())
    }

    async fn prepare(&self, terms: &Terms<'_>) -> Result<Self::Ready> {
        let concurrency = self.concurrency.unwrap_or(terms.concurrency.into());
        let worker = FlowWorker::<F>::new().concurrency(concurrency);
        Ok((terms.database.pool().await?, worker))
    }

    async fn start(&self, (pool, worker): Self::Ready) -> Result<Self::Worker> {
        let handle = worker.start(&pool).await?;
        Ok((pool, handle))
    }

    async fn stop(&self, (pool, handle): Self::Worker) -> Result<()> {
        handle.stop().await?;
        pool.close().await;
        Ok(())
    }
}
