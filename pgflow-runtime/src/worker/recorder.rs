//! Records results: many outputs in one call, or a single result until it is recorded or has lost its meaning.

use std::{error::Error, sync::Arc};

use serde_json::value::RawValue;
use sqlx::PgPool;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tracing::{debug, error, info, warn};

use super::{attempt::Finished, wakeup::Wakeup};
use crate::{
    flow::{BoxFuture, StepError},
    sql::{
        CallError,
        complete::{AttemptKey, Completed, CompletionOutcome, complete_tasks},
        error::ErrorClass,
        fail::{Aftermath, Failure, fail_task},
        limit::Limited,
        retry::Backoff,
    },
};

/// An output and the attempt that returned it.
pub(crate) type Output<'a> = (&'a AttemptKey, &'a RawValue);

/// The two calls that a recorder makes.
pub(crate) trait Calls: Send + Sync + 'static {
    fn complete<'a>(
        &'a self,
        outputs: &'a [Output<'a>],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>>;

    fn fail<'a>(
        &'a self,
        key: &'a AttemptKey,
        failure: &'a Failure,
    ) -> BoxFuture<'a, Result<Aftermath, CallError>>;
}

/// The calls as a database answers them, or does not.
#[derive(Debug)]
pub(crate) struct Database {
    complete: Limited,
    fail: Limited,
}

impl Database {
    pub(crate) fn new(pool: &PgPool) -> Self {
        Self {
            complete: Limited::new(pool.clone()),
            fail: Limited::new(pool.clone()),
        }
    }
}

impl Calls for Database {
    fn complete<'a>(
        &'a self,
        outputs: &'a [Output<'a>],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>> {
        Box::pin(
            self.complete
                .call(async |connection| complete_tasks(connection, outputs).await),
        )
    }

    fn fail<'a>(
        &'a self,
        key: &'a AttemptKey,
        failure: &'a Failure,
    ) -> BoxFuture<'a, Result<Aftermath, CallError>> {
        Box::pin(
            self.fail
                .call(async |connection| fail_task(connection, key, failure).await),
        )
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
    pub(crate) async fn complete(&self, outputs: &[Output<'_>]) -> Result<(), CallError> {
        let completed = self.calls.complete(outputs).await?;
        debug!(tasks = outputs.len(), "outputs recorded");
        for item in &completed {
            let Some((key, _)) = outputs.get(item.item) else {
                error!(
                    item = item.item,
                    "the database answered for an item that was not sent"
                );
                continue;
            };
            match item.outcome {
                CompletionOutcome::Completed => {}
                CompletionOutcome::Failed => error!(
                    run_id = %key.run_id, step = key.step_slug,
                    "the output is not the list that a map step needs, the run has failed"
                ),
                CompletionOutcome::Stale => stale(key),
            }
        }
        if completed.iter().any(|item| item.made_ready) {
            self.wakeup.wake_for_ready();
        }
        Ok(())
    }

    /// Records a failed attempt, and logs what the database made of it.
    async fn fail(&self, finished: &Finished, failure: &Failure) -> Result<(), CallError> {
        let aftermath = self.calls.fail(&finished.key, failure).await?;
        if aftermath == Aftermath::Failed {
            // Steps that go on without this one may be ready now.
            self.wakeup.wake_for_ready();
        }
        finished
            .span
            .in_scope(|| log_failed(finished, failure, aftermath));
        Ok(())
    }

    /// Records one result alone, and does not rest before it is recorded or nobody waits for it any more.
    pub(crate) async fn insist(&self, mut finished: Finished) {
        let mut backoff = Backoff::database();
        loop {
            let Err(error) = self.record(&mut finished).await else {
                return;
            };
            let key = &finished.key;
            match error.class() {
                ErrorClass::Gone => {
                    info!(
                        run_id = %key.run_id, step = key.step_slug, %error, failure = failure_of(&finished),
                        "the task is gone, its result is dropped"
                    );
                    return;
                }
                ErrorClass::PoolClosed | ErrorClass::Data => return give_up(&finished, &error),
                // By then the task was given to another attempt, and this one's result would be ignored.
                ErrorClass::Other if Instant::now() >= finished.current_until => {
                    return give_up(&finished, &error);
                }
                ErrorClass::Transient | ErrorClass::Other => {
                    let delay = backoff.next_delay();
                    warn!(
                        run_id = %key.run_id, step = key.step_slug, ?delay, error = &error as &dyn Error, failure = failure_of(&finished),
                        "a result could not be recorded, it is tried again"
                    );
                    sleep(delay).await;
                }
            }
        }
    }

    /// Records one result alone, without trying again. An output that can't be stored becomes the failure that is recorded instead.
    pub(crate) async fn record(&self, finished: &mut Finished) -> Result<(), CallError> {
        let error = match self.try_alone(finished).await {
            // The handler succeeded, but what it returned can't be stored, now or later.
            Err(error) if error.class() == ErrorClass::Data && finished.result.is_ok() => error,
            result => return result,
        };
        finished.result = Err(unstorable(error));
        self.try_alone(finished).await
    }

    async fn try_alone(&self, finished: &Finished) -> Result<(), CallError> {
        // The semaphore is never closed, so this is a permit.
        let _turn = self.turn.acquire().await;
        match &finished.result {
            Ok(output) => self.complete(&[(&finished.key, output)]).await,
            Err(failure) => self.fail(finished, failure).await,
        }
    }
}

fn unstorable(error: CallError) -> Failure {
    Failure {
        message: format!(
            "the step's output can't be stored: {}",
            StepError::from(error).message()
        ),
        retry_delay: None,
        retryable: false,
    }
}

/// In the span of the attempt.
fn log_failed(finished: &Finished, failure: &Failure, aftermath: Aftermath) {
    let (error, max_attempts) = (&failure.message, finished.max_attempts);
    match aftermath {
        // The handler has chosen when: it was refused for now, as by a rate limit.
        Aftermath::Retried(retry_delay) if failure.retry_delay.is_some() => {
            info!(%error, max_attempts, ?retry_delay, "attempt put off by its handler, another one follows");
        }
        Aftermath::Retried(retry_delay) => {
            warn!(%error, max_attempts, ?retry_delay, "attempt failed, another one follows");
        }
        Aftermath::Failed if !failure.retryable => {
            error!(%error, max_attempts, "attempt failed, and no other follows: its error is permanent");
        }
        Aftermath::Failed if finished.key.attempt >= max_attempts => {
            error!(%error, max_attempts, "attempt failed, it was the last one");
        }
        Aftermath::Failed => error!(
            %error, max_attempts,
            "attempt failed, and no other follows: the task may have fewer now, or its message is gone"
        ),
        Aftermath::Stale => info!(
            %error,
            "attempt failed, and is no longer the current one, or its run has ended: that it failed is ignored"
        ),
    }
}

/// What a handler failed with, where that could not be recorded: nothing else tells.
fn failure_of(finished: &Finished) -> Option<&str> {
    let failure = finished.result.as_ref().err()?;
    Some(&failure.message)
}

fn stale(key: &AttemptKey) {
    info!(
        run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
        "the attempt is no longer the current one, its result is ignored"
    );
}

fn give_up(finished: &Finished, error: &CallError) {
    let key = &finished.key;
    error!(
        run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
        error = error as &dyn Error, failure = failure_of(finished),
        "a result could not be recorded; stall recovery will repeat the task"
    );
}
