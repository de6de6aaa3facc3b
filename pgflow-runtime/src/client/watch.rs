//! Polls one run repeatedly, and waits during database outages.

use std::{error::Error, time::Duration};

use tokio::time::Instant;
use tracing::warn;
use uuid::Uuid;

use super::{
    RunHandle,
    hints::{self, Hears, News, Pace, Sight, Waiter},
};
use crate::sql::CallError;

/// The longest database outage that is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Watch {
    run_id: Uuid,
    /// None once no more looks are needed.
    waiter: Option<Waiter>,
    /// The last look failed: since when looks fail, and why.
    failure: Option<(Instant, CallError)>,
}

impl Watch {
    /// To be made before the first look, so that what happens after that look is noticed.
    pub(super) fn new<F>(run: &RunHandle<F>, pace: Pace, hears: Hears) -> Self {
        let run_id = run.run_id();
        Self {
            run_id,
            waiter: Some(Waiter::join(run.pool(), run_id, hears, pace, run.listens())),
            failure: None,
        }
    }

    /// Returns the result of a poll; none during a database outage, when the caller is to repeat
    /// the poll after a [`pause`](Self::pause). Fails when the outage lasts too long, or when a
    /// repetition has no prospect of success.
    pub(super) fn seen<T>(&mut self, look: Result<T, CallError>) -> Result<Option<T>, CallError> {
        match look {
            Ok(seen) => {
                self.failure = None;
                Ok(Some(seen))
            }
            Err(error) => {
                self.failed(error)?;
                if let Some((_, error)) = &self.failure {
                    warn!(run_id = %self.run_id, error = error as &dyn Error, "a run could not be looked at, it is tried again");
                }
                Ok(None)
            }
        }
    }

    fn failed(&mut self, error: CallError) -> Result<(), CallError> {
        let since = self
            .failure
            .take()
            .map_or_else(Instant::now, |(since, _)| since);
        if !error.is_transient() || since.elapsed() > PATIENCE {
            return Err(error);
        }
        self.failure = Some((since, error));
        Ok(())
    }

    /// Notes how far the run had come at the last look.
    pub(super) fn saw(&self, sight: Sight) {
        if let Some(waiter) = &self.waiter {
            waiter.saw(sight);
        }
    }

    /// Waits until it is time for the next look.
    ///
    /// # Errors
    ///
    /// As for [`seen`](Self::seen): looks at many runs together have failed for too long.
    pub(super) async fn pause(&mut self) -> Result<(), CallError> {
        loop {
            let news = match &self.waiter {
                Some(waiter) => waiter.sleep().await,
                None => return Ok(()),
            };
            match news {
                News::Recovered => self.failure = None,
                News::Failed(error) if error.is_transient() => self.failed(hints::own(error))?,
                // After a failure that lasts, the look that follows fails with an error of its own.
                News::Look | News::Failed(_) => return Ok(()),
            }
        }
    }

    /// For who needs no more looks.
    pub(super) fn stop_listening(&mut self) {
        self.waiter = None;
    }

    /// Returns the error of the last poll if it failed.
    pub(super) fn into_failure(self) -> Option<CallError> {
        self.failure.map(|(_, source)| source)
    }
}
