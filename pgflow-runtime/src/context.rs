//! The data that a handler receives about its attempt.

use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    flow::{DecodeError, Permanent, decode},
    sql::{CallError, limit::on_pool, run::read_input},
    testing::StepContextBuilder,
};

/// The attempt that a handler runs: whose it is, how often it was tried, and until when.
///
/// Cheap to clone; a step takes it as `ctx: &StepContext` or by value.
#[derive(Clone)]
pub struct StepContext {
    inner: Arc<Attempt>,
}

/// The facts of one attempt, as the claim returned them.
#[expect(
    clippy::struct_field_names,
    reason = "an attempt's number is called attempt everywhere"
)]
pub(crate) struct Attempt {
    pub(crate) run_id: Uuid,
    pub(crate) flow_slug: &'static str,
    pub(crate) step_slug: &'static str,
    pub(crate) task_index: i32,
    pub(crate) attempt: i32,
    pub(crate) max_attempts: i32,
    pub(crate) message_id: i64,
    pub(crate) read_count: i32,
    pub(crate) enqueued_at: DateTime<Utc>,
    pub(crate) deadline: Instant,
    pub(crate) cancelled: CancellationToken,
    /// None in tests that gave none.
    pub(crate) pool: Option<PgPool>,
    /// The flow's input in a test.
    pub(crate) flow_input: Option<Box<RawValue>>,
}

impl StepContext {
    pub(crate) fn new(attempt: Attempt) -> Self {
        Self {
            inner: Arc::new(attempt),
        }
    }

    /// A context for the test of a step that is called without a worker: see
    /// [`testing`](crate::testing).
    pub fn for_test() -> StepContextBuilder {
        StepContextBuilder::default()
    }

    /// The run that the task belongs to.
    pub fn run_id(&self) -> Uuid {
        self.inner.run_id
    }

    /// The flow's slug.
    pub fn flow_slug(&self) -> &'static str {
        self.inner.flow_slug
    }

    /// The step's slug.
    pub fn step_slug(&self) -> &'static str {
        self.inner.step_slug
    }

    /// The element's position in the mapped list; 0 for a single step.
    pub fn task_index(&self) -> i32 {
        self.inner.task_index
    }

    /// Returns the number of this attempt, counted from 1.
    pub fn attempt(&self) -> i32 {
        self.inner.attempt
    }

    /// Returns the number of attempts of the task, including the first one.
    pub fn max_attempts(&self) -> i32 {
        self.inner.max_attempts
    }

    /// The task's message in its queue.
    pub fn message_id(&self) -> i64 {
        self.inner.message_id
    }

    /// Returns the number of reads of the message, including this one.
    pub fn read_count(&self) -> i32 {
        self.inner.read_count
    }

    /// Returns the time at which the message was put into its queue.
    pub fn enqueued_at(&self) -> DateTime<Utc> {
        self.inner.enqueued_at
    }

    /// Returns the deadline of this attempt; the handler is dropped then. With `timeout = "none"`
    /// that is 68 years away.
    pub fn deadline(&self) -> Instant {
        self.inner.deadline
    }

    /// Returns the remaining time of this attempt.
    pub fn remaining(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// Resolves when nothing waits for this attempt any more, or will soon: a handler that can stop
    /// early should, and so should what it spawned.
    ///
    /// This happens in three cases: the worker shuts down; the attempt's result is no longer
    /// needed; or the handler is dropped at its timeout. The result is no longer needed when the
    /// run or the step has ended without this attempt, was skipped or deleted, or when the task was
    /// given to another attempt because this one seemed dead. The worker learns this within 5 s. In
    /// the first two cases the handler continues until it returns. Its output is recorded after a
    /// shutdown was requested, and ignored when it is no longer needed.
    pub async fn cancelled(&self) {
        self.inner.cancelled.cancelled().await;
    }

    /// The token behind [`cancelled`](Self::cancelled), to pass on.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.inner.cancelled.clone()
    }

    /// The same for every attempt of the task: give it to services that deduplicate requests.
    pub fn idempotency_key(&self) -> String {
        format!(
            "{}:{}:{}",
            self.inner.run_id, self.inner.step_slug, self.inner.task_index
        )
    }

    /// Fetches the flow's input: for a step that needs it only sometimes. One that always does
    /// takes it as parameter `input`, which comes with the claim.
    ///
    /// # Errors
    ///
    /// When the database can't be reached, which another attempt may mend, and when the input is no
    /// `T`, which none will.
    pub async fn flow_input<T: DeserializeOwned>(&self) -> Result<T, FlowInputError> {
        let stored;
        let json = if let Some(given) = &self.inner.flow_input {
            given
        } else {
            stored =
                on_pool!(self.pool(), connection => read_input(connection, self.inner.run_id))?;
            stored.as_ref().ok_or(FlowInputError::RunGone)?
        };
        decode(json).map_err(|misfit| {
            FlowInputError::Decode(Permanent::new(DecodeError::new("the flow's input", misfit)))
        })
    }

    /// The worker's pool, for the handler's own queries.
    ///
    /// # Panics
    ///
    /// Only a context [for a test](Self::for_test) that was given no pool.
    pub fn pool(&self) -> &PgPool {
        self.inner.pool.as_ref().expect(
            "this context was made by `StepContext::for_test()` without a database; give it `.pool(&pool)`, or for `ctx.flow_input()` only \
             `.flow_input(&input)`",
        )
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext")
            .field("run_id", &self.inner.run_id)
            .field("step_slug", &self.inner.step_slug)
            .field("task_index", &self.inner.task_index)
            .field("attempt", &self.inner.attempt)
            .finish_non_exhaustive()
    }
}

/// The reason why a step could not get the flow's input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlowInputError {
    /// The database could not be reached, or failed.
    #[error("the flow's input could not be fetched")]
    Database(#[from] CallError),
    /// The run was deleted while the attempt ran.
    #[error("the run was deleted, and its input with it")]
    RunGone,
    /// The input is not of the type that was asked for: ask for the flow's own input type.
    #[error(transparent)]
    Decode(Permanent),
}
