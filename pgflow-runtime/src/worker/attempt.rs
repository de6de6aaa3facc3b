//! Runs one attempt of one task.

use std::{error::Error, time::Duration};

use serde_json::value::RawValue;
use sqlx::PgPool;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{Span, info_span, warn};
use uuid::Uuid;

use super::{Shared, budget::Reserved, handlers::Handlers};
use crate::{
    contained::{Contained, contain, discard},
    context::{Attempt, StepContext},
    flow::{Builds, MAX_SIZE, Retry, StepError, Task, stored_text},
    sql::{
        claim::ClaimedTask, complete::AttemptKey, fail::Failure, limit::within,
        written_by::written_by,
    },
};

/// The time after its timeout at which an attempt counts as stalled: then the database returns the
/// task to its queue.
const STALLED_AFTER: Duration = Duration::from_secs(30);

/// The longest time to look up which build wrote a value.
const LOOK_UP: Duration = Duration::from_secs(2);

/// An attempt that has ended, to be recorded.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) key: AttemptKey,
    /// Until when the attempt can be the current one.
    pub(crate) current_until: Instant,
    /// The number of its task's attempts at the time of the claim.
    pub(crate) max_attempts: i32,
    /// The attempt's, for what is logged of its result.
    pub(crate) span: Span,
    pub(crate) result: Result<Box<RawValue>, Failure>,
    /// The output's place among those that wait to be recorded.
    pub(crate) reserved: Reserved,
}

/// The span of everything that is logged while the task is attempted.
pub(crate) fn span(task: &ClaimedTask) -> Span {
    info_span!(
        "pgflow.task",
        run_id = %task.run_id,
        step = task.step_slug,
        task_index = task.task_index,
        attempt = task.attempt
    )
}

/// An attempt of a worker. It is notified when the worker is asked to stop, or when its result is
/// no longer needed.
pub(crate) async fn run(shared: &Shared, step_index: usize, claimed: ClaimedTask) -> Finished {
    let cancelled = shared.stop.child_token();
    let handlers = &*shared.handlers;
    let key = key(handlers, step_index, &claimed);
    let deadline = Instant::now() + claimed.timeout;
    let max_attempts = claimed.max_attempts;
    let attempts = &shared.attempts;
    let running = attempts.enter(key.clone(), cancelled.clone(), deadline);
    let build = shared.options.build.as_deref();
    let work = run_with(
        handlers,
        build,
        &shared.pool,
        cancelled,
        step_index,
        claimed,
    );
    let finished = running.watch(work).await;
    // A handler that has ended is told nothing, nor is what it left behind on purpose.
    drop(running);
    finished.unwrap_or_else(|| Finished {
        key,
        current_until: deadline + STALLED_AFTER,
        max_attempts,
        span: Span::current(),
        result: Err(abandoned(shared.options.abandon_after)),
        reserved: Reserved::default(),
    })
}

/// Calls the handler of a step and returns its output, or why there is none; nothing that a handler
/// does leaves this function.
pub(crate) async fn run_with(
    handlers: &dyn Handlers,
    build: Option<&str>,
    pool: &PgPool,
    cancelled: CancellationToken,
    step_index: usize,
    claimed: ClaimedTask,
) -> Finished {
    let definition = handlers.definition();
    let step_slug = definition.steps[step_index].slug;
    let deadline = Instant::now() + claimed.timeout;
    let ctx = StepContext::new(Attempt {
        run_id: claimed.run_id,
        flow_slug: definition.slug,
        step_slug,
        task_index: claimed.task_index,
        attempt: claimed.attempt,
        max_attempts: claimed.max_attempts,
        message_id: claimed.message_id,
        read_count: claimed.read_count,
        enqueued_at: claimed.enqueued_at,
        deadline,
        cancelled: cancelled.clone(),
        pool: Some(pool.clone()),
        flow_input: None,
    });

    // A handler that is dropped, here or by an aborted shutdown, can't tell what it spawned; its
    // token does.
    let dropped = cancelled.drop_guard();
    let mut call = Contained::new(call(handlers, step_index, &claimed, ctx));
    let result = match timeout_at(deadline, &mut call).await {
        Ok(Ok(result)) => {
            dropped.disarm();
            match result.and_then(|output| check_size(output, MAX_SIZE)) {
                Ok(output) => Ok(output),
                Err(mut error) => {
                    name_builds(&mut error, build, pool, claimed.run_id).await;
                    Err(failure(error))
                }
            }
        }
        Ok(Err(panic)) => Err(may_succeed_later(&format!("the handler panicked: {panic}"))),
        Err(_elapsed) => {
            let mut message = format!(
                "the attempt timed out after {} s; raise the step's `timeout`, or do less in one task",
                claimed.timeout.as_secs()
            );
            if let Err(panic) = call.end() {
                message.push_str("; the handler panicked when it was dropped: ");
                message.push_str(&panic);
            }
            Err(may_succeed_later(&message))
        }
    };
    drop(call);
    Finished {
        key: key(handlers, step_index, &claimed),
        current_until: deadline + STALLED_AFTER,
        max_attempts: claimed.max_attempts,
        span: Span::current(),
        result,
        reserved: Reserved::default(),
    }
}

/// Names the builds in the error of an attempt that could not read a stored value.
async fn name_builds(error: &mut StepError, build: Option<&str>, pool: &PgPool, run_id: Uuid) {
    let Some(unreadable) = error.unreadable() else {
        return;
    };
    let mut builds = Builds {
        reader: build.map(str::to_owned),
        writer: None,
    };
    if let Some(source) = unreadable.written_by().cloned() {
        let looked_up = within(pool, LOOK_UP, async |connection| {
            written_by(connection, run_id, &source).await
        });
        // The wait for a connection has the pool's own limit, which may be long.
        match timeout(LOOK_UP, looked_up).await {
            Ok(Ok(writer)) => builds.writer = writer,
            Ok(Err(error)) => warn!(
                error = &error as &dyn Error,
                "the build that wrote the value could not be looked up, the failure does not name it"
            ),
            Err(_elapsed) => warn!(
                "the build that wrote the value could not be looked up in time, the failure does not name it"
            ),
        }
    }
    unreadable.name(builds);
}

fn key(handlers: &dyn Handlers, step_index: usize, claimed: &ClaimedTask) -> AttemptKey {
    AttemptKey {
        run_id: claimed.run_id,
        step_slug: handlers.definition().steps[step_index].slug,
        task_index: claimed.task_index,
        attempt: claimed.attempt,
    }
}

async fn call(
    handlers: &dyn Handlers,
    step_index: usize,
    claimed: &ClaimedTask,
    ctx: StepContext,
) -> Result<Box<RawValue>, StepError> {
    let step = &handlers.definition().steps[step_index];
    let task = Task::new(step, &claimed.input, claimed.flow_input.as_deref(), ctx)?;
    match handlers.call(step_index, &task) {
        Some(output) => output.await,
        None => Err(StepError::permanent(format!(
            "step `{}` has no handler; expected one per step of the definition",
            step.slug
        ))),
    }
}

fn check_size(output: Box<RawValue>, most: usize) -> Result<Box<RawValue>, StepError> {
    let size = output.get().len();
    if size <= most {
        return Ok(output);
    }
    Err(StepError::permanent(format!(
        "the step's output has {size} bytes, Postgres can store {most}; keep large data elsewhere and return where it lies"
    )))
}

fn abandoned(after: Option<Duration>) -> Failure {
    Failure {
        message: format!(
            "the attempt was abandoned: no heartbeat of its worker was answered for {:?} (`abandon_after`)",
            after.unwrap_or_default()
        ),
        retry: Retry::Ordinary,
    }
}

/// Converts an error; the database decides about its consequence, which is logged then.
fn failure(error: StepError) -> Failure {
    let retry = error.retry();
    let mut message = contain(|| error.message()).unwrap_or_else(|panic| {
        format!("the handler failed, and its error panicked when it was printed: {panic}")
    });
    if let Err(panic) = discard(error) {
        message.push_str("; the error panicked when it was dropped: ");
        message.push_str(&panic);
    }
    Failure {
        message: stored_text(&message),
        retry,
    }
}

fn may_succeed_later(message: &str) -> Failure {
    Failure {
        message: stored_text(message),
        retry: Retry::Ordinary,
    }
}

#[cfg(test)]
mod tests;
