//! Records results one by one, until each is recorded or has lost its meaning.

use std::{error::Error, sync::Arc};

use serde_json::value::RawValue;
use sqlx::PgPool;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tracing::{debug, error, info, warn};

use super::wakeup::Wakeup;
use crate::{
    flow::BoxFuture,
    sql::{
        CallError,
        complete::{AttemptKey, Completed, CompletionOutcome, complete_tasks},
        error::ErrorClass,
        fail::{Failure, fail_task},
        retry::Backoff,
    },
};

/// An output that waits to be recorded.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) key: AttemptKey,
    pub(crate) current_until: Instant,
    pub(crate) json: Box<RawValue>,
}

/// The two calls that a recorder makes.
pub(crate) trait Calls: Send + Sync + 'static {
    fn complete<'a>(
        &'a self,
        outputs: &'a [Output],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>>;

    /// Returns the task's status after the failure.
    fn fail<'a>(
        &'a self,
        key: &'a AttemptKey,
        failure: &'a Failure,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>>;
}

impl Calls for PgPool {
    fn complete<'a>(
        &'a self,
        outputs: &'a [Output],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>> {
        let items = outputs.iter().map(|output| (&output.key, &*output.json));
        Box::pin(complete_tasks(self, items))
    }

    fn fail<'a>(
        &'a self,
        key: &'a AttemptKey,
        failure: &'a Failure,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        Box::pin(fail_task(self, key, failure))
    }
}

#[derive(Debug)]
pub(crate) struct Recorder<C> {
    calls: C,
    wakeup: Wakeup,
    /// Single results take turns, so that a burst of failures does not take the whole pool.
    turn: Semaphore,
}

impl<C: Calls> Recorder<C> {
    pub(crate) fn new(calls: C, wakeup: Wakeup) -> Arc<Self> {
        Arc::new(Self {
            calls,
            wakeup,
            turn: Semaphore::new(1),
        })
    }

    /// Records outputs in one call; all or none.
    pub(crate) async fn complete(&self, outputs: &[Output]) -> Result<(), CallError> {
        let completed = self.calls.complete(outputs).await?;
        debug!(tasks = outputs.len(), "outputs recorded");
        for item in &completed {
            let Some(Output { key, .. }) = outputs.get(item.item) else {
                error!(item = item.item, "an answer is for no item of the batch");
                continue;
            };
            match item.outcome {
                CompletionOutcome::Completed => {}
                CompletionOutcome::Failed => {
                    error!(run_id = %key.run_id, step = key.step_slug, "the output is not what a dependent step takes, the run has failed");
                }
                CompletionOutcome::Stale => stale(key),
            }
        }
        if completed.iter().any(|item| item.made_ready) {
            self.wakeup.wake();
        }
        Ok(())
    }

    /// Records one output alone: what fails now is its own fault.
    pub(crate) async fn complete_alone(&self, output: Output) {
        let call = async || self.complete(std::slice::from_ref(&output)).await;
        if let Err(error) = self.insist(&output.key, output.current_until, call).await {
            let failure = Failure {
                message: format!(
                    "the step's output can't be stored: {}",
                    crate::flow::StepError::from(error).message()
                ),
                retry_delay: None,
                retryable: false,
            };
            error!(run_id = %output.key.run_id, step = output.key.step_slug, task_index = output.key.task_index,
                error = %failure.message, "attempt failed, and no other follows");
            self.fail(output.key, output.current_until, failure).await;
        }
    }

    /// Records one failed attempt.
    pub(crate) async fn fail(&self, key: AttemptKey, current_until: Instant, failure: Failure) {
        let call = async || {
            let status = self.calls.fail(&key, &failure).await?;
            match status.as_deref() {
                // Another attempt follows, after a delay.
                Some("queued") => {}
                // Steps that go on without this one may be ready now.
                Some("failed" | "skipped") => self.wakeup.wake(),
                _ => stale(&key),
            }
            Ok(())
        };
        if let Err(error) = self.insist(&key, current_until, call).await {
            give_up(&key, &error);
        }
    }

    /// Calls until the result is recorded or can't be any more; returns the error when the values that are sent are at fault.
    async fn insist(
        &self,
        key: &AttemptKey,
        current_until: Instant,
        call: impl AsyncFn() -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let mut backoff = Backoff::database();
        loop {
            let error = {
                // Never closed, so this is always a permit.
                let _turn = self.turn.acquire().await;
                match call().await {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                }
            };
            match error.class() {
                ErrorClass::Data => return Err(error),
                ErrorClass::Gone => {
                    info!(run_id = %key.run_id, step = key.step_slug, error = %error, "the task is gone, its result is dropped");
                    return Ok(());
                }
                ErrorClass::PoolClosed => {
                    give_up(key, &error);
                    return Ok(());
                }
                // After that the task has been given to another attempt, and this one's result would be ignored.
                ErrorClass::Other if Instant::now() >= current_until => {
                    give_up(key, &error);
                    return Ok(());
                }
                ErrorClass::Transient | ErrorClass::Other => {
                    let delay = backoff.next_delay();
                    warn!(run_id = %key.run_id, step = key.step_slug, ?delay,
                        error = &error as &dyn Error, "a result could not be recorded, it is tried again");
                    sleep(delay).await;
                }
            }
        }
    }
}

fn stale(key: &AttemptKey) {
    info!(run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
        "the attempt is no longer the current one, its result is ignored");
}

fn give_up(key: &AttemptKey, error: &CallError) {
    error!(run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
        error = error as &dyn Error, "a result could not be recorded; stall recovery will repeat the task");
}
