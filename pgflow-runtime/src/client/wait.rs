//! Waits for the end of a run.

use std::{error::Error, future::IntoFuture, time::Duration};

use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use super::{RunError, RunHandle, ends::Waiter};
use crate::{
    flow::{BoxFuture, Flow, Outputs},
    sql::{
        CallError,
        retry::Backoff,
        run::{RunEnd, read_end},
    },
};

/// How often a run is looked at: soon at first, then rarely.
const LOOKS: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));
/// A database that is away for less is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a run when it is awaited: made by [`RunHandle::wait`].
#[derive(Debug)]
#[must_use = "nothing is waited for until this is awaited"]
pub struct Wait<F> {
    run: RunHandle<F>,
    timeout: Option<Duration>,
    looks: Backoff,
}

impl<F: Flow> Wait<F> {
    pub(super) fn new(run: RunHandle<F>) -> Self {
        Self {
            run,
            timeout: None,
            looks: LOOKS,
        }
    }

    /// Waits no longer than this: then the result is [`RunError::Timeout`], and the run goes on.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How often the run is looked at without a notification of its end. By default that is soon at first, then every 500 ms. Where notifications come,
    /// something longer spares the database the looks of many waits; an end whose notification is lost is seen that much later.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.looks = Backoff::new(interval, interval);
        self
    }

    async fn run(self) -> Result<F::Output, RunError> {
        let run_id = self.run.run_id();
        let mut look = Look {
            run: &self.run,
            looks: self.looks.clone(),
            failure: None,
        };
        let Some(limit) = self.timeout else {
            return look.until_ended().await;
        };
        if let Ok(result) = timeout(limit, look.until_ended()).await {
            return result;
        }
        Err(match look.failure {
            Some((_, source)) => RunError::Database { run_id, source },
            None => RunError::Timeout {
                run_id,
                timeout: limit,
            },
        })
    }
}

impl<F: Flow> IntoFuture for Wait<F> {
    type Output = Result<F::Output, RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

struct Look<'a, F> {
    run: &'a RunHandle<F>,
    looks: Backoff,
    /// The last look failed: since when looks fail, and why.
    failure: Option<(Instant, CallError)>,
}

impl<F: Flow> Look<'_, F> {
    async fn until_ended(&mut self) -> Result<F::Output, RunError> {
        let run_id = self.run.run_id();
        // Before the first look: an end after it must be heard of.
        let waiter = self
            .run
            .listens()
            .then(|| Waiter::join(self.run.pool(), run_id));
        loop {
            match read_end(self.run.pool(), run_id).await {
                Ok(Some(end)) => {
                    self.failure = None;
                    if let Some(result) = self.result(end) {
                        return result;
                    }
                }
                Ok(None) => return Err(RunError::NotFound { run_id }),
                Err(source) => self.tolerate(source)?,
            }
            let pause = self.looks.next_delay();
            match &waiter {
                Some(waiter) => waiter.sleep(pause).await,
                None => sleep(pause).await,
            }
        }
    }

    fn tolerate(&mut self, source: CallError) -> Result<(), RunError> {
        let run_id = self.run.run_id();
        let since = self
            .failure
            .take()
            .map_or_else(Instant::now, |(since, _)| since);
        if !source.is_transient() || since.elapsed() > PATIENCE {
            return Err(RunError::Database { run_id, source });
        }
        warn!(%run_id, error = &source as &dyn Error, "a run could not be looked at, it is tried again");
        self.failure = Some((since, source));
        Ok(())
    }

    /// How the run ended, if it has.
    fn result(&self, end: RunEnd) -> Option<Result<F::Output, RunError>> {
        let run_id = self.run.run_id();
        let expected = F::DEFINITION.slug;
        if end.flow_slug != expected {
            return Some(Err(RunError::OtherFlow {
                run_id,
                expected,
                actual: end.flow_slug,
            }));
        }
        match end.status.as_str() {
            "completed" => {
                let json = end.output.as_deref().unwrap_or(RawValue::NULL);
                let output = Outputs::new(json).and_then(|outputs| F::__output(&outputs));
                Some(output.map_err(|source| RunError::Output { run_id, source }))
            }
            "failed" => Some(Err(RunError::Failed {
                run_id,
                step: end.failed_step,
                message: end.error_message.unwrap_or_default(),
            })),
            _ => None,
        }
    }
}
