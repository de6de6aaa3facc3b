//! The reasons why a run could not be executed to its end.

use std::fmt;

use uuid::Uuid;

use crate::{
    client::ClientError,
    sql::CallError,
    startup::{LiveWorker, StartupError},
};

/// The way for a test to avoid all other users of its database.
const OWN_DATABASE: &str = "give the test a database of its own: name another one in DATABASE_URL, or run it without that variable, where \
     `DevDatabase` starts a private one";

/// The reason why [`run_to_end`](super::run_to_end) could not execute a run to its end. A run that
/// failed has ended: that is no error of this kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunToEndError {
    /// Workers serve the flow in this database, and would take the run's tasks: stop them, or start
    /// the run with [`Client`](crate::client::Client) and let them do it. Nothing was changed.
    #[error(
        "workers serve flow `{flow}` in this database, and would take the run's tasks:{}\nstop them, or {}",
        Lines(workers),
        OWN_DATABASE
    )]
    LiveWorkers {
        /// The flow's slug.
        flow: &'static str,
        /// The workers.
        workers: Vec<LiveWorker>,
    },
    /// The definition could not be stored, or verified: see the source. Nothing was left behind.
    #[error("the flow could not be made ready in the database")]
    Startup(#[from] StartupError),
    /// The run could not be started: see the source.
    #[error("the run could not be started")]
    Start(#[from] ClientError),
    /// The workers of this call were asked to stop, for example by a worker, or another test, with
    /// another definition of the flow. Give flows with different definitions different slugs, or
    /// each test its own database.
    #[error(
        "run {run_id} was interrupted: {reason}; give flows that differ different slugs, or {}",
        OWN_DATABASE
    )]
    Interrupted {
        /// The run.
        run_id: Uuid,
        /// The reason of the refusal.
        reason: String,
    },
    /// Another worker attempted tasks of the run, so the report would be incomplete. Stop the
    /// flow's workers, or give the test its own database.
    #[error(
        "task {task_index} of step `{step}` in run {run_id} was attempted {attempts} times, {own} times by this call: a worker took part; stop the \
         flow's workers, or {}",
        OWN_DATABASE
    )]
    TakenByOthers {
        /// The run.
        run_id: Uuid,
        /// The step.
        step: String,
        /// The task.
        task_index: i32,
        /// The number of attempts of the task.
        attempts: i32,
        /// The number of attempts by this call.
        own: usize,
    },
    /// The run has not ended, and there is nothing to do for a while: its rows or messages are
    /// locked, were taken by another worker, or were changed manually.
    #[error(
        "run {run_id} does not go on: {explanation}; stop whatever else works on this database, and run it again"
    )]
    Stuck {
        /// The run.
        run_id: Uuid,
        /// The database's explanation of the next step.
        explanation: String,
    },
    /// The run was deleted while it ran: by pruning, or by the deletion or replacement of the flow.
    #[error("run {run_id} was deleted while it ran; {}", OWN_DATABASE)]
    RunGone {
        /// The run.
        run_id: Uuid,
    },
    /// The database could not be reached, or failed. The run has not ended: its tasks wait in their
    /// queues.
    #[error("run {run_id} could not be run to its end, a database call failed")]
    Database {
        /// The run.
        run_id: Uuid,
        /// The error of the call.
        source: CallError,
    },
    /// The stored result of the ended run can't be read.
    #[error("run {run_id} has ended, and can't be read")]
    Unreadable {
        /// The run.
        run_id: Uuid,
        /// The fault of the result.
        source: ClientError,
    },
}

/// Each on a line of its own.
struct Lines<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Lines<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}
