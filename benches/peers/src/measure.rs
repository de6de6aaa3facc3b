//! One measurement: a database of its own, all jobs queued, then the clock.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::{sleep, timeout};

use crate::{
    Result,
    contestants::{Contestant, Entry, Terms},
    load::{Load, Meter},
    options::Options,
    server::{Database, Server},
    work,
};

/// The precision with which the end is observed.
const LOOK: Duration = Duration::from_millis(1);
/// Longer than the longest poll interval among the contestants, a minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// The results of one repetition of one contestant.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sample {
    pub(crate) jobs: u32,
    pub(crate) tasks: u32,
    /// From the start of the worker to the moment when its tables say that nothing is left.
    pub(crate) load: Load,
    /// The figures that could not be measured, with the reasons.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
}

pub(crate) async fn measure<C: Contestant>(
    contestant: C,
    server: &Server,
    options: &Options,
    entry: &Entry,
) -> Result<Sample> {
    let database = server.database(options.connections).await?;
    let jobs = entry.work.jobs(options.jobs);
    let terms = Terms {
        database: &database,
        jobs,
        concurrency: options.concurrency,
    };
    work::reset();
    contestant.queue(&terms).await?;
    database.settle().await?;
    let ready = contestant.prepare(&terms).await?;
    if work::handled() > 0 {
        return Err("jobs ran before the clock did".into());
    }

    let mut meter = Meter::new(&database.observer).await?;
    let started = meter.start(&[&database.observer]).await?;
    let tasks = jobs * entry.work.tasks_per_job();
    let worker = contestant.start(ready).await?;
    let done = until_done::<C>(&database, tasks).await;
    let stopped = meter.stop(started).await?;
    let stopping = timeout(PATIENCE, contestant.stop(worker)).await;
    // Why a worker ended says more than that its jobs did not.
    stopping.map_err(|_| "its worker does not stop")??;
    done?;

    let load = meter.load(stopped, &[&database.observer]).await?;
    check::<C>(&database, tasks).await?;
    let notes = meter.notes().to_vec();
    drop(meter);
    database.discard().await?;
    Ok(Sample {
        jobs,
        tasks,
        load,
        notes,
    })
}

/// Counts in this process until all handlers have run, which costs the server nothing; then asks
/// it.
async fn until_done<C: Contestant>(database: &Database, tasks: u32) -> Result<()> {
    let mut progress = (0, Instant::now());
    loop {
        let handled = work::handled();
        if handled >= tasks.into() && !is_left::<C>(database).await? {
            return Ok(());
        }
        if handled > progress.0 {
            progress = (handled, Instant::now());
        } else if progress.1.elapsed() > PATIENCE {
            return Err(format!(
                "nothing has moved for {} s: {handled} of {tasks} tasks were handled",
                PATIENCE.as_secs()
            )
            .into());
        }
        sleep(LOOK).await;
    }
}

async fn is_left<C: Contestant>(database: &Database) -> Result<bool> {
    Ok(sqlx::query_scalar(C::IS_LEFT)
        .fetch_one(&database.observer)
        .await?)
}

/// That each task ran once, and that the tables show it.
async fn check<C: Contestant>(database: &Database, tasks: u32) -> Result<()> {
    let handled = work::handled();
    if handled != u64::from(tasks) {
        return Err(format!("{handled} handlers ran for {tasks} tasks").into());
    }
    if is_left::<C>(database).await? {
        return Err("something is left after the worker has stopped".into());
    }
    if let Some(sql) = C::ENDED {
        let ended: i64 = sqlx::query_scalar(sql)
            .fetch_one(&database.observer)
            .await?;
        if ended != i64::from(tasks) {
            return Err(format!("{ended} of {tasks} tasks are recorded as ended").into());
        }
    }
    Ok(())
}
