//! What starting a run costs.

use serde::Serialize;

use pgflow::sqlx::PgPool;

use crate::{
    Result,
    flows::{Data, Measured, Work},
    load::Load,
    options::Options,
    server::{Place, clean},
    work::{Crew, start_runs},
};

/// Runs that are started when no number was asked for.
const RUNS: usize = 2_000;
/// Runs that each session starts before.
const WARM_UP: usize = 20;

/// How many connections start runs at a time.
pub(crate) const CONNECTIONS: [u32; 2] = [1, 10];

/// How runs are started. A call that starts many at once belongs here, and into [`start_all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// `Client::start`, a call for each run.
    Single,
}

impl Way {
    pub(crate) const ALL: &[Self] = &[Self::Single];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
        }
    }
}

/// What came out of one measurement.
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
    };
    if ids.len() != runs {
        return Err(format!("{} runs were started, and not {runs}", ids.len()).into());
    }
    Ok(())
}
