//! One measurement: queue the runs, start a worker, wait until all have ended.

use std::{fmt, time::Instant};

use pgflow::{
    prelude::*,
    sqlx::{self, PgPool},
};

use crate::support::{Result, number};

/// How much to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) runs: usize,
    pub(crate) map_runs: usize,
    pub(crate) elements: usize,
    pub(crate) concurrency: usize,
}

impl Scale {
    pub(crate) fn from_env() -> Result<Self> {
        Ok(Self {
            runs: number("BENCH_RUNS", 2000)?,
            map_runs: number("BENCH_MAP_RUNS", 2)?,
            elements: number("BENCH_ELEMENTS", 2000)?,
            concurrency: number("BENCH_CONCURRENCY", 10)?,
        })
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs of each flow, {} of the map with {} elements; one worker, {} tasks at a time",
            self.runs, self.map_runs, self.elements, self.concurrency
        )
    }
}

/// What came out, as a row of a table.
#[derive(Debug)]
pub(crate) struct Measured {
    flow: &'static str,
    runs: usize,
    tasks: usize,
    start_seconds: f64,
    seconds: f64,
}

impl Measured {
    pub(crate) const HEADER: &str =
        "flow               runs     tasks   started/s    tasks/s     runs/s";
}

impl fmt::Display for Measured {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts are far below 2^52, and a figure is read to three digits"
    )]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = |n: usize, seconds: f64| n as f64 / seconds;
        write!(
            f,
            "{:<14} {:>8} {:>9} {:>11.0} {:>10.0} {:>10.1}",
            self.flow,
            self.runs,
            self.tasks,
            per_second(self.runs, self.start_seconds),
            per_second(self.tasks, self.seconds),
            per_second(self.runs, self.seconds),
        )
    }
}

/// Queues all runs, then lets one worker do them. The clock of the tasks runs from the worker's start to the end of the last run.
pub(crate) async fn measure<F>(
    pool: &PgPool,
    scale: &Scale,
    input: &F::Input,
    tasks_per_run: usize,
) -> Result<Measured>
where
    F: Flow<State = (), Queues = pgflow::OneQueue>,
{
    let slug = F::DEFINITION.slug;
    // Stores the definition, so that runs can be started before the measured worker.
    FlowWorker::<F>::new().start(pool).await?.stop().await?;

    let client = Client::new(pool.clone());
    let starting = Instant::now();
    for _ in 0..scale.runs {
        client.start::<F>(input).await?;
    }
    let start_seconds = starting.elapsed().as_secs_f64();

    let working = Instant::now();
    let worker = FlowWorker::<F>::new()
        .concurrency(scale.concurrency)
        .start(pool)
        .await?;
    while left(pool, slug).await? {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let seconds = working.elapsed().as_secs_f64();
    worker.stop().await?;
    let failed: i64 = sqlx::query_scalar(
        "select count(*) from pgflow.runs where flow_slug = $1 and status <> 'completed'",
    )
    .bind(slug)
    .fetch_one(pool)
    .await?;
    if failed > 0 {
        return Err(format!("{failed} runs of {slug} did not complete").into());
    }
    Ok(Measured {
        flow: slug,
        runs: scale.runs,
        tasks: scale.runs * tasks_per_run,
        start_seconds,
        seconds,
    })
}

async fn left(pool: &PgPool, slug: &str) -> Result<bool> {
    // The queue is empty exactly when no task waits or runs; cheaper to ask than the runs.
    let sql = format!("select exists (select from pgmq.q_{slug})");
    Ok(sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(pool)
        .await?)
}
