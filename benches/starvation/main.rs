//! What a slow step does to a fast one: with one queue for both, and with a queue for each.
//!
//! `cargo bench --bench starvation`, see `benches/README.md`.

mod flows;
#[path = "../support/mod.rs"]
mod support;

use std::{fmt, time::Duration};

use pgflow::{
    prelude::*,
    sqlx::{self, PgPool},
};
use support::{Result, number};

#[tokio::main]
async fn main() -> Result<()> {
    let runs = number("BENCH_RUNS", 500)?;
    let concurrency: usize = number("BENCH_CONCURRENCY", 10)?;
    let pause = Duration::from_millis(number("BENCH_SLOW_MS", 50)?);
    let half = (concurrency / 2).max(1);

    let (database, pool) = support::database(10).await?;
    println!(
        "{runs} runs, {concurrency} slots, the slow step takes {pause:?}\n{}",
        Fast::HEADER
    );

    let shared = || FlowWorker::<flows::Shared>::with_state(pause).concurrency(concurrency);
    shared().start(&pool).await?.stop().await?;
    let queued = queue::<flows::Shared>(&pool, runs, &pause).await?;
    let worker = shared().start(&pool).await?;
    let one_queue = fast::<flows::Shared>(&pool, queued).await?;
    worker.stop().await?;
    println!("{:<16}{one_queue}", "one queue");

    let private = || StepWorker::<flows::Private>::all_with_state(pause).concurrency(half);
    private().start(&pool).await?.stop().await?;
    let queued = queue::<flows::Private>(&pool, runs, &pause).await?;
    let workers = private().start(&pool).await?;
    let own_queues = fast::<flows::Private>(&pool, queued).await?;
    workers.stop().await?;
    println!("{:<16}{own_queues}", "a queue per step");

    println!("{:<16}{}", "ratio", one_queue.over(&own_queues));
    pool.close().await;
    drop(database);
    Ok(())
}

/// What the tasks of the fast step came to.
#[derive(Debug, sqlx::FromRow)]
struct Fast {
    /// Milliseconds from the moment when all were queued.
    p50: f64,
    p95: f64,
    tasks_per_second: f64,
}

impl Fast {
    const HEADER: &str = "                 fast step: p50 ms     p95 ms    tasks/s";

    fn over(&self, other: &Self) -> Self {
        Self {
            p50: self.p50 / other.p50,
            p95: self.p95 / other.p95,
            tasks_per_second: self.tasks_per_second / other.tasks_per_second,
        }
    }
}

impl fmt::Display for Fast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            " {:>17.2} {:>10.2} {:>10.2}",
            self.p50, self.p95, self.tasks_per_second
        )
    }
}

/// Queues all runs at once; returns when that was done, in seconds, by the clock of the database.
async fn queue<F: Flow>(pool: &PgPool, runs: usize, input: &F::Input) -> Result<f64> {
    let mut transaction = pool.begin().await?;
    for _ in 0..runs {
        F::start(&mut *transaction, input).await?;
    }
    transaction.commit().await?;
    Ok(
        sqlx::query_scalar("select extract(epoch from clock_timestamp())::float8")
            .fetch_one(pool)
            .await?,
    )
}

/// Waits until every run has ended, and reads when the fast step's tasks had completed.
async fn fast<F: Flow>(pool: &PgPool, queued: f64) -> Result<Fast> {
    let open = "select count(*) from pgflow.runs where flow_slug = $1 and status = 'started'";
    while sqlx::query_scalar::<_, i64>(open)
        .bind(F::DEFINITION.slug)
        .fetch_one(pool)
        .await?
        > 0
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(sqlx::query_as(
        "select
            1000 * percentile_cont(0.5) within group (order by seconds) as p50,
            1000 * percentile_cont(0.95) within group (order by seconds) as p95,
            count(*) / max(seconds) as tasks_per_second
         from (
             select extract(epoch from t.completed_at)::float8 - $2 as seconds
             from pgflow.step_tasks t
             where t.flow_slug = $1 and t.step_slug = 'fast'
         ) tasks",
    )
    .bind(F::DEFINITION.slug)
    .bind(queued)
    .fetch_one(pool)
    .await?)
}
