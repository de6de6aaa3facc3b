//! The looks at the runs of all who wait over a pool.

use std::{error::Error, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};
use tracing::warn;
use uuid::Uuid;

use super::{
    Hints, Sight, ring,
    waiters::{Batch, Sights},
};
use crate::{
    lock::lock,
    sql::{
        CallError,
        limit::within,
        retry::Backoff,
        watch::{RunState, ended_runs, run_states},
    },
};

/// The most runs of one statement: with more, Postgres compiles it.
const MOST_RUNS: usize = 5000;
/// The longest time for a statement.
const LIMIT: Duration = Duration::from_secs(30);

/// Looks whenever one is due, until it is dropped.
pub(super) async fn run(hints: &Hints) {
    let mut backoff = Backoff::database();
    loop {
        until_due(hints).await;
        let batch = lock(&hints.waiters).take_due(Instant::now());
        match look(hints, &batch).await {
            Ok(sights) => {
                backoff.reset();
                let bells = lock(&hints.waiters).tell(&batch, &sights, Instant::now());
                ring(bells);
            }
            Err(error) => {
                let delay = backoff.next_delay();
                warn!(
                    runs = batch.ends.len() + batch.states.len(),
                    ?delay,
                    error = &error as &dyn Error,
                    "runs could not be looked at, they are tried again"
                );
                let again = Instant::now() + delay;
                let bells = lock(&hints.waiters).fail(&batch, &Arc::new(error), again);
                ring(bells);
            }
        }
    }
}

async fn until_due(hints: &Hints) {
    loop {
        let due = lock(&hints.waiters).next_due();
        let Some(due) = due else {
            hints.sooner.notified().await;
            continue;
        };
        tokio::select! {
            () = sleep_until(due) => return,
            () = hints.sooner.notified() => {}
        }
    }
}

async fn look(hints: &Hints, batch: &Batch) -> Result<Sights, CallError> {
    let mut sights = Sights::default();
    let ends: Vec<Uuid> = batch.ends.iter().copied().collect();
    for run_ids in ends.chunks(MOST_RUNS) {
        let look = within(&hints.pool, LIMIT, async |connection| {
            ended_runs(connection, run_ids).await
        });
        let found = look.await?;
        sights
            .ends
            .extend(run_ids.iter().map(|&run_id| (run_id, Sight::STARTED)));
        let missing = found.missing.into_iter();
        sights
            .ends
            .extend(missing.map(|run_id| (run_id, Sight::Missing)));
        let ended = found.ended.into_iter();
        sights
            .ends
            .extend(ended.map(|run_id| (run_id, Sight::ENDED)));
    }
    let states: Vec<Uuid> = batch.states.iter().copied().collect();
    for run_ids in states.chunks(MOST_RUNS) {
        let look = within(&hints.pool, LIMIT, async |connection| {
            run_states(connection, run_ids).await
        });
        sights.states.extend(
            look.await?
                .into_iter()
                .map(|state| (state.run_id, of(&state))),
        );
    }
    Ok(sights)
}

fn of(state: &RunState) -> Sight {
    Sight::Run {
        is_ended: state.is_ended,
        phases: state.phases,
        remaining: state.remaining,
    }
}
