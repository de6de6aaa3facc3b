//! The reasons why a worker did not start.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use pgflow_definition::Problem;

use crate::{
    migrate::{MigrateError, NotReadyError},
    sql::{CallError, Refusal, RefusalCode, definition::LiveWorker},
    worker::OptionProblem,
};

/// The reason why a worker did not start. Nothing was left behind in the database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartupError {
    /// The definition breaks rules; the database was not asked. Each problem says how to put it
    /// right.
    #[error("the definition of flow `{flow}` is invalid:{}", Lines(problems))]
    InvalidDefinition {
        /// The flow's slug.
        flow: String,
        /// All that is wrong.
        problems: Vec<Problem>,
    },
    /// Options are out of their bounds; the database was not asked.
    #[error("the worker's options are invalid:{}", Lines(problems))]
    InvalidOptions {
        /// All that is wrong.
        problems: Vec<OptionProblem>,
    },
    /// The database can't be reached: check that it runs, the URL, and that the pool has a free
    /// connection.
    #[error(
        "can't connect to the database; check that it runs, and host, role and database of the pool"
    )]
    Connect(#[source] sqlx::Error),
    /// The process can't start the thread that heartbeats and notifications need: raise its limits
    /// of threads and open files.
    #[error(
        "can't start the thread for heartbeats and notifications; raise the process's limits of threads and open files"
    )]
    Thread(#[source] std::io::Error),
    /// The pool's role lacks rights that a worker needs: grant them, as the error says.
    #[error(transparent)]
    MissingRights(#[from] MissingRights),
    /// The migrations of the database are not those of this release: the source names both and the
    /// command to run.
    #[error(transparent)]
    NotReady(#[from] NotReadyError),
    /// The database was to be migrated first, and could not be.
    #[error("the database could not be migrated")]
    Migrate(#[from] MigrateError),
    /// The database holds another definition under this slug. Give the new one a slug of its own: a
    /// slug stands for one shape permanently.
    #[error(
        "the database has another definition of {0}\ngive the changed flow a slug of its own, such as `#[flow(slug = \"{slug}_v2\", ..)]`, \
         and let workers of the old build finish its runs",
        slug = .0.flow
    )]
    ShapeMismatch(Mismatch),
    /// The database routes the steps to other queues. Give the new definition a slug of its own.
    #[error(
        "the database has other queues for {0}\ngive the changed flow a slug of its own, such as `#[flow(slug = \"{slug}_v2\", ..)]`, \
         and let workers of the old build finish its runs",
        slug = .0.flow
    )]
    RoutingMismatch(Mismatch),
    /// The local database has another definition under this slug, and its workers did not stop in
    /// time after a request. Nothing was deleted. Start again once they have stopped, or raise
    /// [`drain_timeout`](crate::worker::FlowWorker::drain_timeout).
    #[error(
        "the local database has another definition of flow `{flow}`:{}\nit is replaced once no worker runs it; after {:.1?} these still live:{}\n\
         stop them and start again, or raise `drain_timeout`; nothing was deleted",
        Lines(differences),
        waited,
        Lines(workers)
    )]
    DrainTimeout {
        /// The flow's slug.
        flow: String,
        /// One line per difference.
        differences: Vec<String>,
        /// The time for which the start waited for the workers.
        waited: Duration,
        /// The workers that still lived.
        workers: Vec<LiveWorker>,
    },
    /// The worker was asked to stop while it waited for others, before it had started; it is not
    /// registered.
    #[error("the worker was asked to stop before it had started")]
    ShutDown,
    /// A queue that the flow needs belongs to another owner: choose another slug, or see the hint.
    #[error("a queue of the flow is not free: {0}")]
    QueueCollision(Refusal),
    /// An operator, a deployment, or work that could not be done, took the worker's function out of
    /// service.
    #[error(transparent)]
    FunctionDisabled(#[from] FunctionDisabled),
    /// The database refused the definition or the worker: read the hint.
    #[error("the database refused the worker: {0}")]
    Refused(Refusal),
    /// A database call failed while the worker started; start it again.
    #[error(
        "the database failed while the worker was starting; start it again when the cause is gone"
    )]
    Database(#[source] sqlx::Error),
}

impl From<CallError> for StartupError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(refusal) if refusal.code() == RefusalCode::QueueCollision => {
                Self::QueueCollision(refusal)
            }
            CallError::Refused(refusal) => Self::Refused(refusal),
            CallError::Database(error) => Self::Database(error),
        }
    }
}

impl From<sqlx::Error> for StartupError {
    fn from(error: sqlx::Error) -> Self {
        CallError::from(error).into()
    }
}

/// The rights that a worker's role lacks and needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingRights {
    /// The pool's role.
    pub role: String,
    /// Each right as `grant` writes it: `execute on function pgflow.claim_tasks`.
    pub rights: Vec<String>,
}

impl fmt::Display for MissingRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "role `{}` lacks rights that a worker needs:{}\nmake it a member of a role that has them, such as pgflow_worker of \
             docs/roles.md, or run the grants of that page again: they are needed after each upgrade",
            self.role,
            Lines(&self.rights)
        )
    }
}

impl std::error::Error for MissingRights {}

/// The differences between the definition in the database and the one in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The flow's slug.
    pub flow: String,
    /// One line per difference.
    pub differences: Vec<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow `{}`:{}", self.flow, Lines(&self.differences))
    }
}

/// A worker function is out of service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionDisabled {
    /// The function's name.
    pub function_name: String,
    /// Since when.
    pub since: Option<DateTime<Utc>>,
    /// The stored reason.
    pub reason: Option<String>,
    /// `true` if it is out of service for a deployment only: the end of that restores what it was
    /// before.
    pub is_fenced: bool,
}

impl fmt::Display for FunctionDisabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.function_name.as_str();
        let state = if self.is_fenced { "fenced" } else { "disabled" };
        write!(f, "worker function `{name}` is {state}")?;
        if let Some(since) = self.since {
            write!(f, " since {}", since.format("%Y-%m-%d %H:%M:%S UTC"))?;
        }
        let reason = self.reason.as_deref().unwrap_or("no reason was given");
        write!(f, " ({reason}); ")?;
        let in_sql = name.replace('\'', "''");
        if self.is_fenced {
            write!(
                f,
                "a deployment replaces its code: its last step, `pgflow workers unfence {name}` with all that were fenced with it, or \
                 `select pgflow.unfence_worker_functions(array['{in_sql}'])`, lets it start again"
            )
        } else {
            write!(
                f,
                "deal with the reason, then run `pgflow workers enable {name}` or \
                 `select pgflow.enable_worker_function('{in_sql}')`"
            )?;
            if reason.starts_with("unsupported work in queue") {
                write!(
                    f,
                    "; messages that no task has are shown by `pgflow queues --inspect`, and archived by \
                     `pgflow workers enable {name} --archive-unsupported`"
                )?;
            }
            Ok(())
        }
    }
}

impl std::error::Error for FunctionDisabled {}

/// Each on a line of its own, below what was said before.
struct Lines<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Lines<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}
