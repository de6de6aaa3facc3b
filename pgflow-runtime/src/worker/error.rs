//! The reasons why a worker stopped.

use std::fmt;

use crate::{
    sql::{CallError, claim::UnsupportedMessage},
    startup::StartupError,
};

/// The reason why a worker did not start, or stopped without a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The worker did not start: see the source.
    #[error("the worker did not start")]
    Startup(#[from] StartupError),
    /// A queue holds work that this build can't do. Nothing of the batch was claimed, and the
    /// worker's function is disabled, so that a supervisor does not start it again: deploy the code
    /// that the messages need, then `pgflow workers enable NAME`. Messages that no task has are
    /// shown by `pgflow queues --inspect`, and archived by `pgflow workers enable NAME
    /// --archive-unsupported`.
    #[error(
        "the worker can't do work that lies in its queue: {}; deploy the build that this work needs and enable the \
         function again; for messages that no task has, `pgflow queues --inspect` shows them, and `pgflow workers \
         enable NAME --archive-unsupported` archives them and enables function NAME",
        Offenders(messages)
    )]
    UnsupportedWork {
        /// The messages that can't be taken.
        messages: Vec<UnsupportedMessage>,
    },
    /// The worker's row is missing, or marked as stopped, although the worker lived. Start a new
    /// worker.
    #[error("the worker is no longer registered; start a new one")]
    NotRegistered(#[source] CallError),
    /// The pool that was given to the worker was closed. Close it after the worker has stopped.
    #[error("the worker's connection pool was closed; close it after the worker has stopped")]
    PoolClosed(#[source] CallError),
    /// Outputs of handlers could not be recorded: the pool was closed before the worker had
    /// stopped, or a database outage lasted until the end of the shutdown. The tasks are repeated.
    /// Close the pool after the worker has stopped.
    #[error(
        "{results} result(s) of handlers that had ended could not be recorded, their tasks will be repeated; close the worker's pool after it has \
         stopped, or give it a longer `shutdown_timeout`"
    )]
    ResultsLost {
        /// The number of lost results.
        results: usize,
    },
    /// The process can't listen for SIGTERM and ctrl-c: give `.shutdown_on(..)`.
    #[error("can't listen for signals; use `.shutdown_on(..)` instead")]
    Signals(#[source] std::io::Error),
    /// A second signal came while the worker was shutting down. No worker returns this any more: a
    /// second signal ends the process, with exit code 143 or 130.
    #[error("a second signal interrupted the shutdown; what still ran will be repeated")]
    Interrupted,
    /// The worker's own task panicked or was cancelled together with its runtime: a fault of
    /// pgflow, please report it.
    #[error("the worker's task ended unexpectedly")]
    Task(#[source] tokio::task::JoinError),
}

struct Offenders<'a>(&'a [UnsupportedMessage]);

impl fmt::Display for Offenders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        for (n, message) in self.0.iter().take(SHOWN).enumerate() {
            if n > 0 {
                f.write_str(", ")?;
            }
            write!(
                f,
                "message {} of queue `{}` ({})",
                message.message_id, message.queue_name, message.reason
            )?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_work_names_the_first_messages_and_counts_the_rest() {
        let messages = (1..=7)
            .map(|message_id| UnsupportedMessage {
                queue_name: "audit".to_owned(),
                message_id,
                reason: "no task".to_owned(),
            })
            .collect();
        let text = WorkerError::UnsupportedWork { messages }.to_string();
        assert!(text.contains("message 1 of queue `audit` (no task), message 2"));
        assert!(text.contains("message 5 of queue `audit` (no task) and 2 more;"));
        assert!(!text.contains("message 6"));
    }
}
