//! Records results: many outputs in one call, or a single result until it is recorded or no longer
//! needed.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::value::RawValue;
use sqlx::PgPool;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tracing::{debug, error, info, warn};

use super::{attempt::Finished, wakeup::Wakeup};
use crate::{
    flow::{BoxFuture, Retry, error_text, stored_text},
    printable::printable,
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

/// The number of times that the database may refuse an output for a transient reason before the
/// attempt fails instead.
const MOST_REFUSALS: u32 = 4;

/// The same where the server did not answer in time: each further call gets twice as much.
const MOST_TIMEOUTS: u32 = 6;

/// The calls that a recorder makes.
pub(crate) trait Calls: Send + Sync + 'static {
    fn complete<'a>(
        &'a self,
        outputs: &'a [Output<'a>],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>>;

    /// The same for an output that was refused before. It may take long, and others do not wait for
    /// it.
    fn complete_again<'a>(
        &'a self,
        outputs: &'a [Output<'a>],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>> {
        self.complete(outputs)
    }

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
    complete_again: Limited,
    fail: Limited,
}

impl Database {
    pub(crate) fn new(pool: &PgPool) -> Self {
        Self {
            complete: Limited::new(pool.clone()),
            complete_again: Limited::new(pool.clone()),
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

    fn complete_again<'a>(
        &'a self,
        outputs: &'a [Output<'a>],
    ) -> BoxFuture<'a, Result<Vec<Completed>, CallError>> {
        Box::pin(
            self.complete_again
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
    /// Refused ones are recorded separately: a call that runs into a time limit delays no other.
    refused_turn: Semaphore,
    /// The results that were accepted and are not recorded.
    unrecorded: AtomicUsize,
}

impl<C: Calls> Recorder<C> {
    pub(crate) fn new(calls: C, wakeup: Wakeup) -> Arc<Self> {
        Arc::new(Self {
            calls,
            wakeup,
            turn: Semaphore::new(1),
            refused_turn: Semaphore::new(1),
            unrecorded: AtomicUsize::new(0),
        })
    }

    /// Counts a result that is to be recorded.
    pub(crate) fn accepted(&self) {
        self.unrecorded.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of results that were accepted, and neither recorded nor found to have lost their
    /// meaning.
    pub(crate) fn unrecorded(&self) -> usize {
        self.unrecorded.load(Ordering::Relaxed)
    }

    fn settled(&self, results: usize) {
        self.unrecorded.fetch_sub(results, Ordering::Relaxed);
    }

    /// Records a batch of accepted outputs in one call; all or none.
    pub(crate) async fn complete_batch(&self, outputs: &[Output<'_>]) -> Result<(), CallError> {
        let completed = self.calls.complete(outputs).await?;
        self.completed(outputs, &completed);
        self.settled(outputs.len());
        Ok(())
    }

    fn completed(&self, outputs: &[Output<'_>], completed: &[Completed]) {
        debug!(tasks = outputs.len(), "outputs recorded");
        for item in completed {
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
                    run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
                    "the output is not one that the run can go on with, the run has failed: its error says why"
                ),
                CompletionOutcome::Stale => stale(key),
            }
        }
        if completed.iter().any(|item| item.made_ready) {
            self.wakeup.wake_for_ready();
        }
    }

    /// Records a failed attempt, and logs what the database made of it.
    async fn fail(&self, finished: &Finished, failure: &Failure) -> Result<(), CallError> {
        let aftermath = self.fail_in_some_words(&finished.key, failure).await?;
        if aftermath == Aftermath::Failed {
            // Steps that continue without this one may be ready now.
            self.wakeup.wake_for_ready();
        }
        finished
            .span
            .in_scope(|| log_failed(finished, failure, aftermath));
        Ok(())
    }

    /// Some failure can always be stored, though not each text: the database's encoding, or a
    /// constraint, may refuse it.
    async fn fail_in_some_words(
        &self,
        key: &AttemptKey,
        failure: &Failure,
    ) -> Result<Aftermath, CallError> {
        let error = match self.calls.fail(key, failure).await {
            Err(error) if matches!(error.class(), ErrorClass::Data | ErrorClass::Other) => error,
            result => return result,
        };
        let in_other_words = |message| Failure {
            message,
            ..failure.clone()
        };
        let escaped = in_other_words(in_ascii(&failure.message));
        match self.calls.fail(key, &escaped).await {
            Err(error) if matches!(error.class(), ErrorClass::Data | ErrorClass::Other) => {}
            result => return result,
        }
        let wordless = in_other_words(format!(
            "the attempt failed; the database refuses the text that says why ({})",
            error.sqlstate().map_or_else(
                || "no SQLSTATE".to_owned(),
                |code| format!("SQLSTATE {code}")
            )
        ));
        self.calls.fail(key, &wordless).await
    }

    /// Records one accepted result alone, until it is recorded or no longer needed.
    pub(crate) async fn insist(&self, mut finished: Finished) {
        let mut backoff = Backoff::database();
        let mut refusals = 0;
        loop {
            let Err(error) = self.record(&mut finished, &mut refusals).await else {
                return self.settled(1);
            };
            let key = &finished.key;
            match error.class() {
                ErrorClass::Gone => {
                    info!(
                        run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
                        error = printable(&error_text(&error)).as_ref(), failure = failure_of(&finished).as_deref(),
                        "the task is gone, its result is dropped"
                    );
                    return self.settled(1);
                }
                ErrorClass::PoolClosed => return give_up(&finished, &error),
                // By then the task was given to another attempt, and this one's result would be
                // ignored.
                ErrorClass::Other | ErrorClass::Data
                    if Instant::now() >= finished.current_until =>
                {
                    give_up(&finished, &error);
                    return self.settled(1);
                }
                ErrorClass::Transient
                | ErrorClass::Limit
                | ErrorClass::Other
                | ErrorClass::Data => {
                    let delay = backoff.next_delay();
                    warn!(
                        run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt, ?delay,
                        error = printable(&error_text(&error)).as_ref(), failure = failure_of(&finished).as_deref(),
                        "a result could not be recorded, it is tried again"
                    );
                    sleep(delay).await;
                }
            }
        }
    }

    /// Records one result alone, trying once. An output that the database refuses, at once
    /// permanently or again and again (`refusals`), becomes the failure that is recorded instead.
    pub(crate) async fn record(
        &self,
        finished: &mut Finished,
        refusals: &mut u32,
    ) -> Result<(), CallError> {
        let turn = if *refusals == 0 {
            &self.turn
        } else {
            &self.refused_turn
        };
        // The semaphore is never closed, so this is a permit.
        let _turn = turn.acquire().await;
        let output = match &finished.result {
            Ok(output) => output,
            Err(failure) => {
                let failed = self.fail(finished, failure).await;
                *refusals += u32::from(failed.is_err());
                return failed;
            }
        };
        let outputs = [(&finished.key, &**output)];
        let completed = if *refusals == 0 {
            self.calls.complete(&outputs).await
        } else {
            self.calls.complete_again(&outputs).await
        };
        let error = match completed {
            Ok(completed) => {
                self.completed(&outputs, &completed);
                return Ok(());
            }
            Err(error) => error,
        };
        let (is_final, most) = match error.class() {
            ErrorClass::Data => (true, 0),
            ErrorClass::Limit | ErrorClass::Other => (false, MOST_REFUSALS),
            ErrorClass::Transient if error.is_out_of_time() => (false, MOST_TIMEOUTS),
            ErrorClass::Transient | ErrorClass::Gone | ErrorClass::PoolClosed => return Err(error),
        };
        *refusals += 1;
        if *refusals < most {
            return Err(error);
        }
        // The handler succeeded, but what it returned can't be stored. A database that can't store
        // the failure either is the one at fault, and the output stays.
        let failure = unstorable(&error, is_final);
        if is_final {
            finished.result = Err(failure.clone());
            return self.fail(finished, &failure).await;
        }
        self.fail(finished, &failure).await?;
        finished.result = Err(failure);
        Ok(())
    }
}

fn unstorable(error: &CallError, is_final: bool) -> Failure {
    Failure {
        message: stored_text(&format!(
            "the step's output can't be stored: {}",
            error_text(error)
        )),
        retry: if is_final {
            Retry::Never
        } else {
            Retry::Ordinary
        },
    }
}

/// The text with each character escaped that some encoding of a database may lack.
fn in_ascii(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            escaped.extend(character.escape_unicode());
        }
    }
    stored_text(&escaped)
}

/// In the span of the attempt. The fields are those of the event too: a filter that takes warnings
/// only has no spans.
fn log_failed(finished: &Finished, failure: &Failure, aftermath: Aftermath) {
    let Finished {
        key, max_attempts, ..
    } = finished;
    let error = printable(&failure.message);
    macro_rules! log {
        ($level:ident, $($rest:tt)+) => {
            $level!(
                %error, max_attempts, run_id = %key.run_id, step = key.step_slug, task_index = key.task_index, attempt = key.attempt,
                $($rest)+
            )
        };
    }
    match aftermath {
        Aftermath::Retried(retry_delay) if matches!(failure.retry, Retry::Postponed(_)) => {
            log!(
                info,
                ?retry_delay,
                "attempt postponed by its handler, it does not count"
            );
        }
        Aftermath::Failed if matches!(failure.retry, Retry::Postponed(_)) => {
            log!(
                error,
                "attempt postponed, and no other follows: its task was postponed for longer than its give_up_after, or its message is gone"
            );
        }
        Aftermath::Retried(retry_delay) if failure.retry.delay().is_some() => {
            log!(
                info,
                ?retry_delay,
                "attempt put off by its handler, another one follows"
            );
        }
        Aftermath::Retried(retry_delay) => {
            log!(warn, ?retry_delay, "attempt failed, another one follows");
        }
        Aftermath::Failed if failure.retry.is_permanent() => {
            log!(
                error,
                "attempt failed, and no other follows: its error is permanent"
            );
        }
        Aftermath::Failed if key.attempt >= *max_attempts => {
            log!(error, "attempt failed, it was the last one");
        }
        Aftermath::Failed => log!(
            error,
            "attempt failed, and no other follows: the task may have fewer now, or its message is gone"
        ),
        Aftermath::Stale => log!(
            info,
            "attempt failed, and is no longer the current one, or its run has ended: that it failed is ignored"
        ),
    }
}

/// Returns the error of a handler that could not be recorded: nothing else reports it.
fn failure_of(finished: &Finished) -> Option<Cow<'_, str>> {
    let failure = finished.result.as_ref().err()?;
    Some(printable(&failure.message))
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
        error = printable(&error_text(error)).as_ref(), failure = failure_of(finished).as_deref(),
        "a result could not be recorded; stall recovery will repeat the task"
    );
}
