//! The number of tasks and runs a second.

use std::time::{Duration, Instant};

use pgflow::sqlx::{PgPool, types::Uuid};

use crate::{
    Result,
    check::check,
    flows::{Data, Measured, Work},
    load::Load,
    options::Options,
    server::{Place, clean},
    work::{Crew, Queues, start_runs},
};

/// The number of tasks of a measurement without a given number of runs.
pub(crate) const TASKS: usize = 10_000;

/// The results of one measurement.
#[derive(Debug)]
pub(crate) struct Throughput {
    pub(crate) runs: usize,
    pub(crate) tasks: usize,
    /// The runs were started; missing when that happened during the work.
    pub(crate) start: Option<Load>,
    pub(crate) work: Load,
}

/// Returns the number of measured runs.
pub(crate) fn runs<F: Measured>(options: &Options, elements: usize) -> usize {
    options
        .runs
        .unwrap_or_else(|| TASKS.div_ceil(F::tasks(elements)))
}

/// Queues runs and lets workers do them. The clock of the work runs from the moment when the
/// workers are ready until the last message is archived.
pub(crate) async fn throughput<F: Measured>(
    place: &mut Place,
    options: &Options,
    elements: usize,
) -> Result<Throughput> {
    let keep_ended = place.history > 0;
    clean(&place.pool, F::DEFINITION.slug, keep_ended).await?;
    let mut pools = Vec::new();
    for _ in 0..options.workers {
        pools.push(place.pool_of(options.worker.connections).await?);
    }
    let bench = Bench {
        data: Data::of_bytes(options.worker.payload),
        elements,
        concurrency: options.worker.concurrency,
        pools: &pools,
    };
    bench.warm_up::<F>(options).await?;

    place.meter.checkpoint().await?;
    let runs = runs::<F>(options, elements);
    let throughput = bench.measure::<F>(place, runs, options.online).await?;
    for pool in &pools {
        pool.close().await;
    }
    Ok(throughput)
}

struct Bench<'a> {
    data: Data,
    elements: usize,
    concurrency: usize,
    pools: &'a [PgPool],
}

impl Bench<'_> {
    /// Those whose sessions may have something to tell the meter.
    fn pools<'a>(&'a self, other: &'a PgPool) -> Vec<&'a PgPool> {
        self.pools.iter().chain([other]).collect()
    }

    /// Runs the flow until all sessions know what they will be asked, and for as long as `--churn`
    /// says.
    async fn warm_up<F: Measured>(&self, options: &Options) -> Result<()> {
        let until = Instant::now() + Duration::from_secs_f64(options.churn);
        let elements = self.elements.min(options.warm_up.max(1));
        let tasks = F::tasks(elements);
        let runs = options.warm_up.div_ceil(tasks).max(1);
        loop {
            let work = Work::new(self.data.clone(), runs * tasks);
            work.open();
            let crew = Crew::start::<F>(self.pools, self.concurrency, &work).await?;
            for pool in self.pools {
                let share = runs.div_ceil(self.pools.len());
                start_runs::<F>(pool, share, elements, &self.data).await?;
            }
            let queues = Queues::of::<F>(&self.pools[0]).await?;
            queues.drained(&self.pools[0], &work).await?;
            crew.stop().await?;
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Starts the runs before the work, or, `online`, during it.
    async fn measure<F: Measured>(
        &self,
        place: &mut Place,
        runs: usize,
        online: bool,
    ) -> Result<Throughput> {
        let (meter, pools) = (&mut place.meter, self.pools(&place.pool));
        let mut before = None;
        if !online {
            let started = meter.start(&pools).await?;
            let ids = self.start_runs::<F>(runs).await?;
            let stopped = meter.stop(started).await?;
            before = Some((ids, meter.load(stopped, &pools).await?));
        }

        let tasks = runs * F::tasks(self.elements);
        let work = Work::new(self.data.clone(), tasks);
        let queues = Queues::of::<F>(&self.pools[0]).await?;
        let crew = Crew::start::<F>(self.pools, self.concurrency, &work).await?;
        let started = meter.start(&pools).await?;
        work.open();
        let (ids, start) = match before {
            Some((ids, load)) => (ids, Some(load)),
            None => (self.start_runs::<F>(runs).await?, None),
        };
        queues.drained(&self.pools[0], &work).await?;
        let stopped = meter.stop(started).await?;
        crew.stop().await?;
        let load = meter.load(stopped, &pools).await?;
        check(
            &self.pools[0],
            F::DEFINITION.slug,
            &ids,
            F::tasks(self.elements),
            &self.data,
        )
        .await?;
        Ok(Throughput {
            runs,
            tasks,
            start,
            work: load,
        })
    }

    async fn start_runs<F: Measured>(&self, runs: usize) -> Result<Vec<Uuid>> {
        start_runs::<F>(&self.pools[0], runs, self.elements, &self.data).await
    }
}
