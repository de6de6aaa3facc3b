//! The duration of a run on an idle system, with the worker in its own process.

mod events;
mod process;
mod serve;

use std::time::{Duration, Instant};

use pgflow::{
    Client,
    sqlx::{self, types::Uuid},
};
use tokio::time;

use crate::{
    Result,
    check::check,
    flows::{Data, Measured},
    load::{Load, cpu_of},
    options::Options,
    server::{Place, clean},
    variant::{Events, Mode},
};

use events::Listener;
use process::Process;
pub(crate) use serve::serve;

/// Runs that are measured when no number was asked for.
const RUNS: usize = 300;
/// Runs before.
const WARM_UP: usize = 30;
/// Pauses between runs, so that they meet the worker at any moment of its own.
const PAUSE_MS: std::ops::Range<u64> = 20..150;
const SETTLE: Duration = Duration::from_secs(3);

/// The results: milliseconds of each run, sorted.
#[derive(Debug)]
pub(crate) struct Latency {
    pub(crate) runs: usize,
    /// By the database's clock, from `started_at` to `completed_at`.
    pub(crate) database: Vec<f64>,
    /// From the call of `start` until its notification arrived; empty without events.
    pub(crate) event: Vec<f64>,
    /// From the call of `start` until `wait` returned.
    pub(crate) wait: Vec<f64>,
    /// The worker while there was nothing to do.
    pub(crate) idle: Load,
    /// Seconds of its processor time meanwhile.
    pub(crate) idle_worker_cpu: Option<f64>,
}

pub(crate) async fn latency<F: Measured>(
    place: &mut Place,
    options: &Options,
    mode: Mode,
    events: Events,
) -> Result<Latency> {
    let slug = F::DEFINITION.slug;
    clean(&place.pool, slug, place.history > 0).await?;
    let mut process = Process::start(place, options, mode).await?;
    let pool = place.pool_of(2).await?;
    let mut caller = Caller {
        client: Client::new(pool.clone()),
        listener: match events {
            Events::Off => None,
            Events::Runs | Events::All => Some(Listener::new(&place.pool_of(1).await?).await?),
        },
        data: Data::of_bytes(options.worker.payload),
        random: fastrand::Rng::with_seed(1),
    };
    caller.measure::<F>(WARM_UP).await?;
    let runs = options.runs.unwrap_or(RUNS);
    let measured = caller.measure::<F>(runs).await?;

    time::sleep(SETTLE).await;
    let before = cpu_of(process.id());
    let started = place.meter.start(&[&pool, &place.pool]).await?;
    time::sleep(options.idle()).await;
    let stopped = place.meter.stop(started).await?;
    let after = cpu_of(process.id());
    let idle = place.meter.load_now(stopped, &[&pool, &place.pool]).await?;
    process.stop().await?;

    let database = sqlx::query_scalar(
        "select 1000 * extract(epoch from r.completed_at - r.started_at)::float8 from pgflow.runs r where r.run_id = any ($1)",
    )
    .bind(&measured.ids)
    .fetch_all(&pool)
    .await?;
    check(&pool, slug, &measured.ids, F::tasks(1), &caller.data).await?;
    drop(caller);
    pool.close().await;
    Ok(Latency {
        runs,
        database: sorted(database),
        event: sorted(measured.event),
        wait: sorted(measured.wait),
        idle,
        idle_worker_cpu: before.zip(after).map(|(before, after)| after - before),
    })
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Starts runs and waits for them.
struct Caller {
    client: Client,
    listener: Option<Listener>,
    data: Data,
    random: fastrand::Rng,
}

#[derive(Default)]
struct Seen {
    ids: Vec<Uuid>,
    event: Vec<f64>,
    wait: Vec<f64>,
}

impl Caller {
    async fn measure<F: Measured>(&mut self, runs: usize) -> Result<Seen> {
        let input = <F::Input as crate::flows::RunInput>::make(&self.data, 1);
        let mut seen = Seen::default();
        for _ in 0..runs {
            time::sleep(Duration::from_millis(self.random.u64(PAUSE_MS))).await;
            let at = Instant::now();
            let run = self.client.start::<F>(&input).await?;
            let milliseconds = || at.elapsed().as_secs_f64() * 1e3;
            let wait = async {
                run.wait().await?;
                Result::Ok(milliseconds())
            };
            let event = async {
                match &mut self.listener {
                    Some(listener) => {
                        listener.completed(run.run_id()).await?;
                        Result::Ok(Some(milliseconds()))
                    }
                    None => Ok(None),
                }
            };
            let (wait, event) = tokio::try_join!(wait, event)?;
            seen.ids.push(run.run_id());
            seen.wait.push(wait);
            seen.event.extend(event);
        }
        Ok(seen)
    }
}
