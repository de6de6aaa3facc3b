//! Waits for the end of a run.

use std::{future::IntoFuture, time::Duration};

use serde_json::value::RawValue;
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    RunError, RunHandle,
    hints::{Hears, Pace, Sight},
    watch::Watch,
};
use crate::{
    flow::{BoxFuture, Flow, Outputs},
    sql::{
        limit::on_pool,
        run::{RunEnd, read_end},
    },
};

/// Waits for a run when it is awaited: made by [`RunHandle::wait`].
#[derive(Debug)]
#[must_use = "nothing is waited for until this is awaited"]
pub struct Wait<F> {
    run: RunHandle<F>,
    timeout: Option<Duration>,
    pace: Pace,
}

impl<F: Flow> Wait<F> {
    pub(super) fn new(run: RunHandle<F>) -> Self {
        Self {
            run,
            timeout: None,
            pace: Pace::default(),
        }
    }

    /// Waits no longer than this: then the result is [`RunError::Timeout`], and the run continues.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Looks at the run at this interval, whether its end is notified or not. The default is soon
    /// at first, then every 500 ms, and every 5 s while notifications come.
    ///
    /// Below 10 ms it is 10 ms; `Duration::MAX` means that only a notification leads to a look. All
    /// waits of a process over one pool are looked at together, in one statement for each interval.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.pace = Pace::every(interval);
        self
    }

    async fn run(self) -> Result<F::Output, RunError> {
        let run_id = self.run.run_id();
        let mut watch = Watch::new(&self.run, self.pace, Hears::TheEnd);
        let Some(limit) = self.timeout else {
            return until_ended(&self.run, &mut watch).await;
        };
        if let Ok(result) = timeout(limit, until_ended(&self.run, &mut watch)).await {
            return result;
        }
        Err(match watch.into_failure() {
            Some(source) => RunError::Database { run_id, source },
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

async fn until_ended<F: Flow>(
    run: &RunHandle<F>,
    watch: &mut Watch,
) -> Result<F::Output, RunError> {
    let run_id = run.run_id();
    loop {
        let look = async { on_pool!(run.pool(), connection => read_end(connection, run_id)) }.await;
        let seen = watch
            .seen(look)
            .map_err(|source| RunError::Database { run_id, source })?;
        if let Some(known) = seen {
            let end = known.ok_or(RunError::NotFound { run_id })?;
            if let Some(result) = result::<F>(run_id, end) {
                return result;
            }
            watch.saw(Sight::STARTED);
        }
        let paused = watch.pause().await;
        paused.map_err(|source| RunError::Database { run_id, source })?;
    }
}

/// Returns the result of the run if it has ended.
fn result<F: Flow>(run_id: Uuid, end: RunEnd) -> Option<Result<F::Output, RunError>> {
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
