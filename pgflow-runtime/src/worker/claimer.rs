//! Takes tasks off the worker's queue as slots become free.

use std::{error::Error, sync::Arc, time::Duration};

use sqlx::PgConnection;
use tokio::time::{Instant, sleep};
use tracing::{debug, error, warn};
use uuid::Uuid;

use super::{
    Shared, WorkerError, executor::Executor, lost_claims::LostClaims, pace::AHEAD_BYTES,
    serve::GRACE, wakeup::Sleeper,
};
use crate::{
    flow::error_text,
    printable::printable,
    sql::{
        CallError, RefusalCode,
        claim::{Claim, ClaimedTask, Keep, UnsupportedMessage, claim_tasks, claim_tasks_carefully},
        error::ErrorClass,
        limit::Limited,
        release::release_lost_claims,
        retry::Backoff,
    },
};

/// Claims and starts tasks until the worker is asked to stop.
pub(crate) async fn run(shared: &Shared, executor: &mut Executor) {
    let mut backoff = Backoff::database();
    let calls = Limited::new(shared.pool.clone());
    let pace = executor.pace();
    let mut sleeper = Sleeper::new(&shared.wakeup, shared.options.poll_interval);
    let mut lost = LostClaims::default();
    while let Some(slots) = shared.stop.unless_requested(executor.room()).await {
        // A worker that others may take for dead claims nothing.
        let may_run = shared.attempts.lease_holds();
        if shared.stop.unless_requested(may_run).await.is_none() {
            return;
        }
        sleeper.forget();
        if let Some(due) = lost.due() {
            let after = due.after;
            let answered: Arc<[_]> = due.answered.iter().copied().collect();
            let given_back = calls.call(async |connection| {
                release_lost_claims(connection, shared.worker_id, after, &answered).await
            });
            match given_back.await {
                Ok(tasks) => lost.looked(tasks),
                Err(error) => {
                    let delay = delay_after(&error, &mut backoff);
                    // Nothing is claimed meanwhile: without the database there is nothing to claim
                    // either.
                    if shared.stop.unless_requested(sleep(delay)).await.is_none() {
                        return;
                    }
                    continue;
                }
            }
        }
        let called = Instant::now();
        let Some(claim) = claim(shared, &calls, slots).await else {
            return;
        };
        pace.claim_took(called.elapsed());
        shared.vitals.claimed(claim.is_ok());
        let pause = match claim {
            Ok(Claim::Tasks(claimed)) => {
                backoff.reset();
                lost.answered(&claimed);
                let full = claimed.tasks.len() + claimed.excess.len() >= slots;
                pace.claimed(claimed.tasks.len(), claimed.bytes);
                executor.give_back(claimed.excess);
                start(shared, executor, claimed.tasks);
                if full {
                    continue;
                }
                None
            }
            Ok(Claim::Unsupported(messages)) => {
                unsupported(shared, messages);
                return;
            }
            Err(error) => match fatal(error) {
                Ok(fault) => {
                    shared.stop.fail(fault);
                    return;
                }
                Err(error) => {
                    lost.failed(&error);
                    Some(delay_after(&error, &mut backoff))
                }
            },
        };
        let sleep = async {
            match pause {
                Some(delay) => sleep(delay).await,
                None => sleeper.sleep().await,
            }
        };
        if shared.stop.unless_requested(sleep).await.is_none() {
            return;
        }
    }
}

/// A claim in progress is awaited even when the worker is asked to stop: dropping it would leave
/// started tasks that no worker runs.
async fn claim(shared: &Shared, calls: &Limited, slots: usize) -> Option<Result<Claim, CallError>> {
    let max_tasks = i32::try_from(slots).unwrap_or(i32::MAX);
    // Those for which there are slots now, and of those that wait for one only as much as may wait.
    let keep = Keep {
        tasks: slots.min(shared.options.concurrency),
        bytes: AHEAD_BYTES,
    };
    let claim = calls.call(async |connection| {
        match claim_tasks(&mut *connection, shared.worker_id, max_tasks, keep).await {
            Err(error) if may_be_one_tasks_fault(&error) => {
                carefully(connection, shared.worker_id, max_tasks, keep, error).await
            }
            result => result,
        }
    });
    let claim = shared
        .stop
        .within(shared.options.shutdown_timeout.max(GRACE), claim)
        .await;
    if claim.is_none() {
        warn!(
            "a claim did not return within the shutdown timeout; stall recovery will repeat what it may have started"
        );
    }
    claim
}

/// Returns whether a single message or input may be what a claim fails of: then it would fail each
/// claim, and keep all that come after it.
fn may_be_one_tasks_fault(error: &CallError) -> bool {
    error.refusal().is_none()
        && matches!(
            error.class(),
            ErrorClass::Data | ErrorClass::Limit | ErrorClass::Other
        )
}

/// First with as many tasks, then with the first alone; when that fails too, its error is the one
/// to know.
async fn carefully(
    connection: &mut PgConnection,
    worker_id: Uuid,
    max_tasks: i32,
    keep: Keep,
    error: CallError,
) -> Result<Claim, CallError> {
    warn!(
        error = printable(&error_text(&error)).as_ref(),
        "a claim failed, it is made again with more care"
    );
    match claim_tasks_carefully(&mut *connection, worker_id, max_tasks, keep).await {
        Err(error) if may_be_one_tasks_fault(&error) && max_tasks > 1 => {
            claim_tasks_carefully(connection, worker_id, 1, keep).await
        }
        result => result,
    }
}

fn start(shared: &Shared, executor: &mut Executor, tasks: Vec<ClaimedTask>) {
    if !tasks.is_empty() {
        debug!(tasks = tasks.len(), "tasks claimed");
    }
    if shared.stop.is_requested() {
        executor.give_back(tasks);
        return;
    }
    let definition = shared.handlers.definition();
    let step_indexes: Option<Vec<usize>> = tasks
        .iter()
        .map(|task| definition.step_index(&task.step_slug))
        .collect();
    let Some(step_indexes) = step_indexes else {
        let unknown = tasks
            .iter()
            .filter(|task| definition.step_index(&task.step_slug).is_none());
        let messages = unknown
            .map(|task| UnsupportedMessage {
                queue_name: shared.queue_name.clone(),
                message_id: task.message_id,
                reason: format!(
                    "flow `{}` has no step `{}` in this build",
                    definition.slug, task.step_slug
                ),
            })
            .collect();
        unsupported(shared, messages);
        executor.give_back(tasks);
        return;
    };
    for (step_index, task) in step_indexes.into_iter().zip(tasks) {
        executor.start(step_index, task);
    }
}

fn unsupported(shared: &Shared, messages: Vec<UnsupportedMessage>) {
    let message_ids: Vec<i64> = messages.iter().map(|message| message.message_id).collect();
    error!(
        queue = shared.queue_name,
        ?message_ids,
        function = shared.options.function_name,
        "the queue holds work that this worker can't do, it stops; messages that no task has: `pgflow queues --inspect` \
         shows them, `pgflow workers enable FUNCTION --archive-unsupported` archives them and enables the function"
    );
    shared.stop.fail(WorkerError::UnsupportedWork { messages });
}

/// The fault that an error is for the worker, or the error back when the claim may be tried again.
fn fatal(error: CallError) -> Result<WorkerError, CallError> {
    if error.refusal() == Some(RefusalCode::UnknownWorker) {
        Ok(WorkerError::NotRegistered(error))
    } else if error.class() == ErrorClass::PoolClosed {
        Ok(WorkerError::PoolClosed(error))
    } else {
        Err(error)
    }
}

pub(crate) fn delay_after(error: &CallError, backoff: &mut Backoff) -> Duration {
    let delay = backoff.next_delay();
    warn!(
        ?delay,
        error = error as &dyn Error,
        "a database call failed, it is tried again"
    );
    delay
}
