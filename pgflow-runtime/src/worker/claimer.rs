//! Takes tasks off the worker's queue as slots become free.

use std::{error::Error, time::Duration};

use tokio::time::{Instant, sleep};
use tracing::{debug, error, warn};

use super::{Shared, WorkerError, executor::Executor, wakeup::Sleeper};
use crate::sql::{
    CallError, RefusalCode,
    claim::{Claim, ClaimedTask, UnsupportedMessage, claim_tasks},
    error::ErrorClass,
    limit::Limited,
    retry::Backoff,
};

/// Claims and starts tasks until the worker is asked to stop.
pub(crate) async fn run(shared: &Shared, executor: &mut Executor) {
    let mut backoff = Backoff::database();
    let calls = Limited::new(shared.pool.clone());
    let pace = executor.pace();
    let mut sleeper = Sleeper::new(&shared.wakeup, shared.options.poll_interval);
    while let Some(slots) = shared.stop.unless_requested(executor.room()).await {
        sleeper.forget();
        let called = Instant::now();
        let Some(claim) = claim(shared, &calls, slots).await else {
            return;
        };
        pace.claim_took(called.elapsed());
        let pause = match claim {
            Ok(Claim::Tasks(tasks)) => {
                backoff.reset();
                let full = tasks.len() >= slots;
                start(shared, executor, tasks);
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
async fn claim(shared: &Shared, calls: &Limited, slots: usize) -> Option<Result<Claim, CallError>> {
    let max_tasks = i32::try_from(slots).unwrap_or(i32::MAX);
    let claim =
        calls.call(async |connection| claim_tasks(connection, shared.worker_id, max_tasks).await);
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
