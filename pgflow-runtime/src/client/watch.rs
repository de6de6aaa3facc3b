//! Looks at one run, again and again: how often, what wakes up early, and how long a database that is away is waited for.

use std::{error::Error, time::Duration};

use tokio::time::{Instant, sleep};
use tracing::warn;
use uuid::Uuid;

use super::{
    RunHandle,
    hints::{Hears, Waiter},
};
use crate::sql::{CallError, retry::Backoff};

/// A database that is away for less is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a run is looked at.
#[derive(Debug, Clone)]
pub(super) struct Pace(Backoff);

impl Pace {
    pub(super) fn every(interval: Duration) -> Self {
        Self(Backoff::new(interval, interval))
    }
}

/// Soon at first, then rarely.
impl Default for Pace {
    fn default() -> Self {
        Self(Backoff::new(
            Duration::from_millis(20),
            Duration::from_millis(500),
        ))
    }
}

#[derive(Debug)]
pub(super) struct Watch {
    run_id: Uuid,
    pace: Pace,
    /// None when the client does not listen.
    waiter: Option<Waiter>,
    /// The last look failed: since when looks fail, and why.
    failure: Option<(Instant, CallError)>,
}

impl Watch {
    /// To be made before the first look: what happens after that look must be heard of.
    pub(super) fn new<F>(run: &RunHandle<F>, pace: Pace, hears: Hears) -> Self {
        let run_id = run.run_id();
        Self {
            run_id,
            pace,
            waiter: run
                .listens()
                .then(|| Waiter::join(run.pool(), run_id, hears)),
            failure: None,
        }
    }

    /// What a look saw; none when the database was away, and is to be looked at again after a [`pause`](Self::pause). Fails when the database
    /// has been away for too long, or there is no point in trying again.
    pub(super) fn seen<T>(&mut self, look: Result<T, CallError>) -> Result<Option<T>, CallError> {
        let source = match look {
            Ok(seen) => {
                self.failure = None;
                return Ok(Some(seen));
            }
            Err(source) => source,
        };
        let since = self
            .failure
            .take()
            .map_or_else(Instant::now, |(since, _)| since);
        if !source.is_transient() || since.elapsed() > PATIENCE {
            return Err(source);
        }
        warn!(run_id = %self.run_id, error = &source as &dyn Error, "a run could not be looked at, it is tried again");
        self.failure = Some((since, source));
        Ok(None)
    }

    /// Waits until it is time for the next look.
    pub(super) async fn pause(&mut self) {
        let pause = self.pace.0.next_delay();
        match &self.waiter {
            Some(waiter) => waiter.sleep(pause).await,
            None => sleep(pause).await,
        }
    }

    /// For who needs no more looks.
    pub(super) fn stop_listening(&mut self) {
        self.waiter = None;
    }

    /// Why the last look failed, if it did.
    pub(super) fn into_failure(self) -> Option<CallError> {
        self.failure.map(|(_, source)| source)
    }
}
