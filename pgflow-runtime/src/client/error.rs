//! The errors that callers receive.

use uuid::Uuid;

use crate::{
    flow::{DecodeError, EncodeError},
    sql::{CallError, Refusal, RefusalCode, advice::advice},
};

/// The reason why a run could not be started or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The database has no such flow: start a worker for it first, which stores the definition.
    #[error("the flow is unknown to the database: {0}")]
    UnknownFlow(Refusal),
    /// The input can't be stored as JSON.
    #[error("the input{} of flow `{flow}` can't be stored", index.map(|index| format!(" at index {index}")).unwrap_or_default())]
    UnstorableInput {
        /// The flow's slug.
        flow: &'static str,
        /// The index of the wrong input, from 0; `None` if the call takes only one.
        index: Option<usize>,
        /// The fault of the input.
        source: EncodeError,
    },
    /// The flow does not take this input, such as one that is no array for a flow that maps over
    /// it. Of many inputs, the text names the first such one by its place, from 1.
    #[error("the flow does not take this input: {0}")]
    BadInput(Refusal),
    /// There is no run with this id: it was never started, its transaction is not committed, or it
    /// was pruned.
    #[error(
        "run {run_id} is unknown; check the id, and that the transaction that started it was committed; it may have been deleted"
    )]
    NotFound {
        /// The id that was asked for.
        run_id: Uuid,
    },
    /// The run belongs to another flow: ask for it with that flow's type.
    #[error(
        "run {run_id} belongs to flow `{actual}`, not to flow `{expected}`; ask for it with that flow's type"
    )]
    OtherFlow {
        /// The run.
        run_id: Uuid,
        /// The flow that was expected.
        expected: &'static str,
        /// The flow that it belongs to.
        actual: String,
    },
    /// The run has a step that the flow does not have in this build: the database holds another
    /// definition of the flow.
    #[error(
        "run {run_id} has a step `{step}`, which flow `{flow}` of this program does not have; build the program with the definition that the database holds, or give the changed flow a slug of its own"
    )]
    UnknownStep {
        /// The run.
        run_id: Uuid,
        /// The flow's slug.
        flow: &'static str,
        /// The step's slug.
        step: String,
    },
    /// A value from the database can't be read: it was migrated for another release than this
    /// program was built with.
    #[error("the state of run {run_id} can't be read; use the release that migrated the database")]
    Unreadable {
        /// The run.
        run_id: Uuid,
        /// The fault and its place.
        source: DecodeError,
    },
    /// The database refused the call: read the hint.
    #[error("the database refused the call: {0}")]
    Refused(Refusal),
    /// The database could not be reached, or failed.
    #[error("the database call failed{}", advice(.0))]
    Database(#[source] sqlx::Error),
}

impl From<CallError> for ClientError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(refusal) => match refusal.code() {
                RefusalCode::UnknownFlow => Self::UnknownFlow(refusal),
                RefusalCode::InvalidInput => Self::BadInput(refusal),
                _ => Self::Refused(refusal),
            },
            CallError::Database(error) => Self::Database(error),
        }
    }
}

/// The reason why waiting for a run returned no output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run failed.
    #[error("run {run_id} failed{}: {message}", step.as_deref().map(|step| format!(" at step `{step}`")).unwrap_or_default())]
    Failed {
        /// The run.
        run_id: Uuid,
        /// The step that failed it.
        step: Option<String>,
        /// The message of its last attempt.
        message: String,
    },
    /// The run had not ended in the time that the caller gave. It continues; wait again.
    #[error("run {run_id} did not end within {timeout:?}; it goes on, and can be waited for again")]
    Timeout {
        /// The run.
        run_id: Uuid,
        /// The time that was waited.
        timeout: std::time::Duration,
    },
    /// There is no run with this id: it was never started, its transaction is not committed, or it
    /// was pruned.
    #[error(
        "run {run_id} is unknown; check the id, and that the transaction that started it was committed; it may have been deleted"
    )]
    NotFound {
        /// The id that was asked for.
        run_id: Uuid,
    },
    /// The run belongs to another flow: ask for it with that flow's type.
    #[error(
        "run {run_id} belongs to flow `{actual}`, not to flow `{expected}`; ask for it with that flow's type"
    )]
    OtherFlow {
        /// The run.
        run_id: Uuid,
        /// The flow that was expected.
        expected: &'static str,
        /// The flow that it belongs to.
        actual: String,
    },
    /// The run completed, and its output does not have the type that this build expects.
    #[error("run {run_id} completed, but its output can't be read")]
    Output {
        /// The run.
        run_id: Uuid,
        /// The fault and its place.
        source: DecodeError,
    },
    /// The database could not be reached for a while, or failed. The run continues; wait again.
    #[error("run {run_id} can't be waited for, the database call failed; the run itself goes on")]
    Database {
        /// The run.
        run_id: Uuid,
        /// The error of the call.
        source: CallError,
    },
}
