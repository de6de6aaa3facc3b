//! Starts runs and sees them to their end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use pgflow::{
    Client, WorkersHandle,
    sqlx::{self, AssertSqlSafe, PgPool, types::Uuid},
};
use tokio::{task::JoinSet, time};

use crate::{
    Result,
    check::queues,
    flows::{Data, Measured, RunInput, Work},
};

/// The interval at which the queues are checked when all handlers have run.
const LOOK: Duration = Duration::from_millis(2);
/// Longer than a lost attempt takes to come back.
const PATIENCE: Duration = Duration::from_secs(150);

/// Starts runs over all connections of the pool, each as soon as one before it was started; returns
/// their ids.
pub(crate) async fn start_runs<F: Measured>(
    pool: &PgPool,
    runs: usize,
    elements: usize,
    data: &Data,
) -> Result<Vec<Uuid>> {
    let input = Arc::new(F::Input::make(data, elements));
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..pool.options().get_max_connections() {
        let (client, input, next) = (
            Client::new(pool.clone()),
            Arc::clone(&input),
            Arc::clone(&next),
        );
        callers.spawn(async move {
            let mut ids = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < runs {
                ids.push(client.start::<F>(&input).await?.run_id());
            }
            Result::Ok(ids)
        });
    }
    let mut ids = Vec::new();
    while let Some(started) = callers.join_next().await {
        ids.extend(started??);
    }
    Ok(ids)
}

/// The workers of all instances, one for each pool.
#[derive(Debug)]
pub(crate) struct Crew(Vec<WorkersHandle>);

impl Crew {
    pub(crate) async fn start<F: Measured>(
        pools: &[PgPool],
        concurrency: usize,
        work: &Work,
    ) -> Result<Self> {
        let mut handles = Vec::new();
        for pool in pools {
            handles.push(F::start_workers(pool, concurrency, work.clone()).await?);
        }
        Ok(Self(handles))
    }

    pub(crate) async fn stop(self) -> Result<()> {
        for handle in self.0 {
            handle.stop().await?;
        }
        Ok(())
    }
}

/// The check that the queues of a flow are empty: cheaper than a query of the runs, and equivalent.
#[derive(Debug)]
pub(crate) struct Queues(String);

impl Queues {
    pub(crate) async fn of<F: Measured>(pool: &PgPool) -> Result<Self> {
        let queues = queues(pool, F::DEFINITION.slug).await?;
        let any: Vec<String> = queues
            .iter()
            .map(|queue| format!("exists (select from pgmq.q_{queue})"))
            .collect();
        Ok(Self(format!("select not ({})", any.join(" or "))))
    }

    /// Waits until all handlers have run and their results have arrived. Asks nothing of the
    /// database before that.
    pub(crate) async fn drained(&self, pool: &PgPool, work: &Work) -> Result<()> {
        all_done(work).await?;
        let since = Instant::now();
        loop {
            let are_empty: bool = sqlx::query_scalar(AssertSqlSafe(self.0.clone()))
                .fetch_one(pool)
                .await?;
            if are_empty {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                return Err("all handlers have run, but messages stay in the queues".into());
            }
            time::sleep(LOOK).await;
        }
    }
}

async fn all_done(work: &Work) -> Result<()> {
    let mut done = work.done();
    while time::timeout(PATIENCE, work.all_done()).await.is_err() {
        if work.done() == done {
            return Err(
                format!("{done} handlers have run, and for {PATIENCE:?} no more did").into(),
            );
        }
        done = work.done();
    }
    Ok(())
}
