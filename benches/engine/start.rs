//! The cost of starting a run.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde::Serialize;
use tokio::task::JoinSet;

use pgflow::{
    Client,
    sqlx::{PgPool, types::Uuid},
};

use crate::{
    Result,
    flows::{Data, Measured, RunInput, Work},
    load::Load,
    options::Options,
    server::{Place, clean},
    work::{Crew, start_runs},
};

/// Runs that are started when no number was asked for.
const RUNS: usize = 2_000;
/// Runs that each session starts before.
const WARM_UP: usize = 20;

/// Runs that a batch starts in one call.
const BATCH: usize = 100;

/// The numbers of connections that start runs concurrently.
pub(crate) const CONNECTIONS: [u32; 2] = [1, 10];

/// The ways to start runs. Another way belongs here, and into [`start_all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// `Client::start`, a call for each run.
    Single,
    /// `Client::start_many`, a call for each hundred.
    Batch,
}

impl Way {
    pub(crate) const ALL: &[Self] = &[Self::Single, Self::Batch];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
        }
    }
}

/// The results of one measurement.
#[derive(Debug)]
pub(crate) struct Starts {
    pub(crate) runs: usize,
    pub(crate) load: Load,
}

/// Starts runs that nobody works on.
pub(crate) async fn start<F: Measured>(
    place: &mut Place,
    options: &Options,
    connections: u32,
    way: Way,
) -> Result<Starts> {
    let slug = F::DEFINITION.slug;
    let data = Data::of_bytes(options.worker.payload);
    let runs = options.runs.unwrap_or(RUNS);
    let pools = [place.pool_of(connections).await?];

    // Stores the definition.
    let work = Work::new(data.clone(), usize::MAX);
    Crew::start::<F>(&pools, options.worker.concurrency, &work)
        .await?
        .stop()
        .await?;
    clean(&place.pool, slug, place.history > 0).await?;
    start_all::<F>(&pools[0], way, WARM_UP * connections as usize, &data).await?;

    place.meter.checkpoint().await?;
    let started = place.meter.start(&[&pools[0], &place.pool]).await?;
    start_all::<F>(&pools[0], way, runs, &data).await?;
    let stopped = place.meter.stop(started).await?;
    let load = place.meter.load(stopped, &[&pools[0], &place.pool]).await?;
    clean(&place.pool, slug, place.history > 0).await?;
    pools[0].close().await;
    Ok(Starts { runs, load })
}

async fn start_all<F: Measured>(pool: &PgPool, way: Way, runs: usize, data: &Data) -> Result<()> {
    let ids = match way {
        Way::Single => start_runs::<F>(pool, runs, 1, data).await?,
        Way::Batch => start_batches::<F>(pool, runs, data).await?,
    };
    if ids.len() != runs {
        return Err(format!("{} runs were started, and not {runs}", ids.len()).into());
    }
    Ok(())
}

/// Starts runs over all connections of the pool, a batch as soon as one before it was started;
/// returns their ids.
async fn start_batches<F: Measured>(pool: &PgPool, runs: usize, data: &Data) -> Result<Vec<Uuid>> {
    let inputs: Vec<F::Input> = (0..BATCH).map(|_| F::Input::make(data, 1)).collect();
    let inputs = Arc::new(inputs);
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..pool.options().get_max_connections() {
        let (client, inputs, next) = (
            Client::new(pool.clone()),
            Arc::clone(&inputs),
            Arc::clone(&next),
        );
        callers.spawn(async move {
            let mut ids = Vec::new();
            loop {
                let done = next.fetch_add(BATCH, Ordering::Relaxed);
                let size = runs.saturating_sub(done).min(BATCH);
                if size == 0 {
                    return Result::Ok(ids);
                }
                let handles = client.start_many::<F>(&inputs[..size]).await?;
                ids.extend(handles.iter().map(pgflow::RunHandle::run_id));
            }
        });
    }
    let mut ids = Vec::new();
    while let Some(started) = callers.join_next().await {
        ids.extend(started??);
    }
    Ok(ids)
}
