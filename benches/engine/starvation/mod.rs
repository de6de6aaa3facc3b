//! The effect of a slow step on a fast one: with one queue for both, and with a queue for each.

mod flows;

use std::time::Duration;

use pgflow::{
    prelude::*,
    sqlx::{self, PgPool},
};

use crate::{
    Result,
    options::Options,
    server::{Place, clean},
};

/// Runs in each mode when no number was asked for.
const RUNS: usize = 500;

/// The results for each mode.
#[derive(Debug)]
pub(crate) struct Starvation {
    pub(crate) runs: usize,
    pub(crate) one_queue: Fast,
    pub(crate) own_queues: Fast,
}

/// The results for the tasks of the fast step.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Fast {
    /// Milliseconds from the moment when all were queued.
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) tasks_per_second: f64,
    completed: i64,
}

/// Runs with a slow root and a fast one, all queued before the workers start. Both modes have as
/// many slots together.
pub(crate) async fn starvation(place: &Place, options: &Options) -> Result<Starvation> {
    let runs = options.runs.unwrap_or(RUNS);
    let concurrency = options.worker.concurrency;
    let half = (concurrency / 2).max(1);
    let pause = Duration::from_millis(options.slow_ms);
    let pool = place.pool_of(options.worker.connections).await?;

    let shared = || FlowWorker::<flows::Shared>::with_state(pause).concurrency(concurrency);
    shared().start(&pool).await?.stop().await?;
    clean(&pool, flows::Shared::DEFINITION.slug, place.history > 0).await?;
    let queued = queue::<flows::Shared>(&pool, runs, &pause).await?;
    let worker = shared().start(&pool).await?;
    let one_queue = fast::<flows::Shared>(&pool, queued, runs).await?;
    worker.stop().await?;

    let private = || StepWorker::<flows::Private>::all_with_state(pause).concurrency(half);
    private().start(&pool).await?.stop().await?;
    clean(&pool, flows::Private::DEFINITION.slug, place.history > 0).await?;
    let queued = queue::<flows::Private>(&pool, runs, &pause).await?;
    let workers = private().start(&pool).await?;
    let own_queues = fast::<flows::Private>(&pool, queued, runs).await?;
    workers.stop().await?;
    pool.close().await;
    Ok(Starvation {
        runs,
        one_queue,
        own_queues,
    })
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
async fn fast<F: Flow>(pool: &PgPool, queued: f64, runs: usize) -> Result<Fast> {
    let open = "select count(*) from pgflow.runs where flow_slug = $1 and status = 'started'";
    while sqlx::query_scalar::<_, i64>(open)
        .bind(F::DEFINITION.slug)
        .fetch_one(pool)
        .await?
        > 0
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let fast: Fast = sqlx::query_as(
        "select
            1000 * percentile_cont(0.5) within group (order by seconds) as p50,
            1000 * percentile_cont(0.95) within group (order by seconds) as p95,
            count(*) / max(seconds) as tasks_per_second,
            count(*) as completed
         from (
             select extract(epoch from t.completed_at)::float8 - $2 as seconds
             from pgflow.step_tasks t
             where t.flow_slug = $1 and t.step_slug = 'fast' and t.completed_at > to_timestamp($2)
         ) tasks",
    )
    .bind(F::DEFINITION.slug)
    .bind(queued)
    .fetch_one(pool)
    .await?;
    if usize::try_from(fast.completed) != Ok(runs) {
        let found = fast.completed;
        return Err(format!(
            "{}: {found} tasks of the fast step have completed, and not {runs}",
            F::DEFINITION.slug
        )
        .into());
    }
    Ok(fast)
}
