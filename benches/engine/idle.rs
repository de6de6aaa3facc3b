//! The cost of idle workers.

use std::time::Duration;

use tokio::time;

use crate::{
    Result,
    flows::{Data, Work, idle30::step::Idle30},
    load::Load,
    options::Options,
    server::{Place, clean},
    work::Crew,
};

/// The time after which the work of a start is done.
const SETTLE: Duration = Duration::from_secs(3);

/// Thirty step workers in this process, with a pool that they share, and empty queues.
pub(crate) async fn idle(place: &mut Place, options: &Options) -> Result<Load> {
    clean(
        &place.pool,
        <Idle30 as pgflow::Flow>::DEFINITION.slug,
        place.history > 0,
    )
    .await?;
    let pool = place.pool_of(options.worker.connections).await?;
    let work = Work::new(Data::of_bytes(0), usize::MAX);
    work.open();
    let pools = [pool];
    let crew = Crew::start::<Idle30>(&pools, options.worker.concurrency, &work).await?;
    time::sleep(SETTLE).await;
    let started = place.meter.start(&[&pools[0], &place.pool]).await?;
    time::sleep(options.idle()).await;
    let stopped = place.meter.stop(started).await?;
    let load = place
        .meter
        .load_now(stopped, &[&pools[0], &place.pool])
        .await?;
    crew.stop().await?;
    pools[0].close().await;
    if work.done() > 0 {
        return Err("an idle worker found something to do".into());
    }
    Ok(load)
}
