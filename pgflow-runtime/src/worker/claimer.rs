//! Takes tasks off the worker's queue as slots become free.

use std::{error::Error, time::Duration};

use tokio::time::sleep;
use tracing::{debug, error, warn};

use super::{Shared, WorkerError, executor::Executor, wakeup::Sleeper};
use crate::sql::{
    CallError, RefusalCode,
    claim::{Claim, ClaimedTask, UnsupportedMessage, claim_tasks},
    error::ErrorClass,
    release::release_tasks,
    retry::Backoff,
};

/// Claims and starts tasks until the worker is asked to stop.
pub(crate) async fn run(shared: &Shared, executor: &mut Executor) {
    let mut backoff = Backoff::database();
    let mut sleeper = Sleeper::new(&shared.wakeup, shared.options.poll_interval);
    while let Some(slots) = shared.stop.unless_requested(executor.free_slots()).await {
        sleeper.forget();
        let Some(claim) = claim(shared, slots).await else {
            return;
        };
        let pause = match claim {
            Ok(Claim::Tasks(tasks)) => {
                backoff.reset();
                let full = tasks.len() >= slots;
                start(shared, executor, tasks).await;
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
                Err(error) => Some(delay_after(&error, &mut backoff)),
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

/// A claim in flight is waited for even when the worker is asked to stop: dropping it would leave tasks started that nobody runs.
async fn claim(shared: &Shared, slots: usize) -> Option<Result<Claim, CallError>> {
    let max_tasks = i32::try_from(slots).unwrap_or(i32::MAX);
    let claim = claim_tasks(&shared.pool, shared.worker_id, max_tasks);
    let claim = shared
        .stop
        .within(shared.options.shutdown_timeout, claim)
        .await;
    if claim.is_none() {
        warn!(
            "a claim did not return within the shutdown timeout; stall recovery will repeat what it may have started"
        );
    }
    claim
}

async fn start(shared: &Shared, executor: &mut Executor, tasks: Vec<ClaimedTask>) {
    if !tasks.is_empty() {
        debug!(tasks = tasks.len(), "tasks claimed");
    }
    if shared.stop.is_requested() {
        release(shared, &tasks).await;
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
        release(shared, &tasks).await;
        return;
    };
    for (step_index, task) in step_indexes.into_iter().zip(tasks) {
        executor.start(step_index, task);
    }
}

/// Gives back what was claimed and not started.
async fn release(shared: &Shared, tasks: &[ClaimedTask]) {
    if tasks.is_empty() {
        return;
    }
    let mut backoff = Backoff::database();
    let released = async {
        loop {
            match release_tasks(&shared.pool, shared.worker_id, tasks).await {
                Err(error) if error.is_transient() => {
                    sleep(delay_after(&error, &mut backoff)).await;
                }
                result => return result,
            }
        }
    };
    let released = shared
        .stop
        .within(shared.options.shutdown_timeout, released)
        .await;
    match released {
        Some(Ok(released)) => debug!(released, "claimed tasks were given back"),
        Some(Err(error)) => error!(
            tasks = tasks.len(),
            error = &error as &dyn Error,
            "claimed tasks could not be given back; stall recovery will repeat them"
        ),
        None => error!(
            tasks = tasks.len(),
            "claimed tasks could not be given back in time; stall recovery will repeat them"
        ),
    }
}

fn unsupported(shared: &Shared, messages: Vec<UnsupportedMessage>) {
    let message_ids: Vec<i64> = messages.iter().map(|message| message.message_id).collect();
    error!(
        queue = shared.queue_name,
        ?message_ids,
        "the queue holds work that this worker can't do, it stops"
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

fn delay_after(error: &CallError, backoff: &mut Backoff) -> Duration {
    let delay = backoff.next_delay();
    warn!(
        ?delay,
        error = error as &dyn Error,
        "a database call failed, it is tried again"
    );
    delay
}
