//! The errors of Postgres for calls that do not succeed.

use std::{borrow::Cow, fmt, io};

use sqlx::{
    error::DatabaseError,
    postgres::{PgDatabaseError, PgSeverity},
};
use uuid::Uuid;

use super::advice::advice;

/// The rule that a function of schema `pgflow` found broken: one variant per SQLSTATE of class
/// `PF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalCode {
    /// `PF001`: no such flow.
    UnknownFlow,
    /// `PF002`: no such run.
    UnknownRun,
    /// `PF003`: no such step, or no such task.
    UnknownTask,
    /// `PF004`: a slug, the graph or an option of a definition is invalid.
    InvalidDefinition,
    /// `PF005`: the flow does not take this input.
    InvalidInput,
    /// `PF006`: a queue name belongs to another owner.
    QueueCollision,
    /// `PF007`: the worker is unknown, stopped or deprecated.
    UnknownWorker,
    /// `PF008`: a claim could not hide all of its messages.
    VisibilityNotSet,
    /// `PF009`: an argument is out of its bounds.
    InvalidArgument,
    /// `PF010`: a queue name is too long.
    QueueNameTooLong,
    /// `PF011`: the flow, the database or the transaction does not support the call.
    NotSupported,
    /// `PF012`: rows contradict each other.
    BrokenInvariant,
}

impl RefusalCode {
    const ALL: [Self; 12] = [
        Self::UnknownFlow,
        Self::UnknownRun,
        Self::UnknownTask,
        Self::InvalidDefinition,
        Self::InvalidInput,
        Self::QueueCollision,
        Self::UnknownWorker,
        Self::VisibilityNotSet,
        Self::InvalidArgument,
        Self::QueueNameTooLong,
        Self::NotSupported,
        Self::BrokenInvariant,
    ];

    /// The SQLSTATE.
    pub const fn sqlstate(self) -> &'static str {
        match self {
            Self::UnknownFlow => "PF001",
            Self::UnknownRun => "PF002",
            Self::UnknownTask => "PF003",
            Self::InvalidDefinition => "PF004",
            Self::InvalidInput => "PF005",
            Self::QueueCollision => "PF006",
            Self::UnknownWorker => "PF007",
            Self::VisibilityNotSet => "PF008",
            Self::InvalidArgument => "PF009",
            Self::QueueNameTooLong => "PF010",
            Self::NotSupported => "PF011",
            Self::BrokenInvariant => "PF012",
        }
    }

    fn from_sqlstate(sqlstate: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|code| code.sqlstate() == sqlstate)
    }
}

/// A function of schema `pgflow` refused a call.
///
/// Contains the whole message of Postgres, so it has no source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: RefusalCode,
    message: String,
    hint: Option<String>,
    constraint: Option<String>,
}

impl Refusal {
    /// Returns the rule that was broken.
    pub fn code(&self) -> RefusalCode {
        self.code
    }

    /// Returns the description of the fault.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the way to fix it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The constraint that was violated, where the function names one.
    pub fn constraint(&self) -> Option<&str> {
        self.constraint.as_deref()
    }

    /// Builds the error that `worker_heartbeat` raises; `worker_heartbeats` only omits such a
    /// worker.
    pub(crate) fn unknown_worker(worker_id: Uuid) -> Self {
        Self {
            code: RefusalCode::UnknownWorker,
            message: format!("worker {worker_id} is not registered, or has stopped"),
            hint: Some("start a new worker: it registers under a new id".to_owned()),
            constraint: None,
        }
    }

    fn from_database(error: &dyn DatabaseError) -> Option<Self> {
        Some(Self {
            code: RefusalCode::from_sqlstate(&error.code()?)?,
            message: error.message().to_owned(),
            hint: error
                .try_downcast_ref::<PgDatabaseError>()
                .and_then(PgDatabaseError::hint)
                .map(ToOwned::to_owned),
            constraint: error.constraint().map(ToOwned::to_owned),
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code.sqlstate())?;
        self.hint
            .iter()
            .try_for_each(|hint| write!(f, "; hint: {hint}"))
    }
}

impl std::error::Error for Refusal {}

/// A call into the database did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// A function of schema `pgflow` refused the call: read [`Refusal::hint`].
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database could not be reached, or answered with an error that is not one of pgflow's:
    /// see the source.
    #[error("the database call failed{}", advice(.0))]
    Database(#[source] sqlx::Error),
}

impl From<sqlx::Error> for CallError {
    fn from(error: sqlx::Error) -> Self {
        match error.as_database_error().and_then(Refusal::from_database) {
            Some(refusal) => Self::Refused(refusal),
            None => Self::Database(error),
        }
    }
}

/// The handling of a call that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The connection or the server is at fault: the same call will succeed later.
    Transient,
    /// A limit was reached, of time, locks, memory or space: the same call may succeed later, or
    /// never.
    Limit,
    /// The values that were sent are at fault: they will never be accepted.
    Data,
    /// The run or task is not there (any more).
    Gone,
    /// This process closed its pool: no call will succeed again.
    PoolClosed,
    /// Anything else: rights, a missing function, a broken invariant, a foreign trigger.
    Other,
}

impl CallError {
    /// The refusal's code, when pgflow refused.
    pub fn refusal(&self) -> Option<RefusalCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Database(_) => None,
        }
    }

    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Refused(refusal) => match refusal.code {
                RefusalCode::UnknownRun | RefusalCode::UnknownTask => ErrorClass::Gone,
                // Another session holds a message for a moment; nothing was changed.
                RefusalCode::VisibilityNotSet => ErrorClass::Transient,
                RefusalCode::InvalidInput | RefusalCode::InvalidArgument => ErrorClass::Data,
                _ => ErrorClass::Other,
            },
            Self::Database(error) => classify(error),
        }
    }

    /// True when the connection that the error came over must not be used again.
    pub(crate) fn spoils_connection(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Database(sqlx::Error::Database(error)) => {
                ended_the_session(&**error) || is_of_session(&**error)
            }
            // Not an answer of the database, so the protocol may be out of step.
            Self::Database(_) => true,
        }
    }

    /// Returns whether the same call may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.class(), ErrorClass::Transient | ErrorClass::Limit)
    }

    /// Returns whether the server did not answer within the time that this process gives a call.
    pub(crate) fn is_out_of_time(&self) -> bool {
        matches!(self, Self::Database(sqlx::Error::Io(error)) if error.kind() == io::ErrorKind::TimedOut)
    }

    /// Returns whether a transient error may come of one of several outputs only: of one that takes
    /// long, or on which a foreign trigger notifies.
    pub(crate) fn may_be_of_one_output(&self) -> bool {
        let is_about_notifications = match self {
            Self::Database(sqlx::Error::Database(error)) => is_about_full_notifications(&**error),
            _ => false,
        };
        is_about_notifications || self.is_out_of_time()
    }

    /// Returns the SQLSTATE of the database, five characters.
    pub(crate) fn sqlstate(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Refused(refusal) => Some(refusal.code.sqlstate().into()),
            Self::Database(error) => error.as_database_error()?.code(),
        }
    }
}

fn classify(error: &sqlx::Error) -> ErrorClass {
    match error {
        // The session ended, or never began: the database takes no connections for now, or not from
        // this role. No fault of the call.
        sqlx::Error::Database(error)
            if ended_the_session(&**error)
                || is_of_session(&**error)
                || is_about_full_notifications(&**error) =>
        {
            ErrorClass::Transient
        }
        sqlx::Error::Database(error) => error
            .code()
            .map_or(ErrorClass::Other, |code| classify_sqlstate(&code)),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed => ErrorClass::Transient,
        sqlx::Error::Encode(_) => ErrorClass::Data,
        sqlx::Error::PoolClosed => ErrorClass::PoolClosed,
        _ => ErrorClass::Other,
    }
}

fn ended_the_session(error: &dyn DatabaseError) -> bool {
    error
        .try_downcast_ref::<PgDatabaseError>()
        .is_some_and(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// The queue of notifications is full, because some session does not read it: no fault of the data
/// in the transaction. Messages are translated, so the source file of Postgres identifies it.
fn is_about_full_notifications(error: &dyn DatabaseError) -> bool {
    error
        .try_downcast_ref::<PgDatabaseError>()
        .is_some_and(|error| error.code() == "54000" && error.file() == Some("async.c"))
}

/// True when an error chain ends with one that only the session is to blame for: the call had no
/// effect, and succeeds on another connection.
pub(crate) fn blames_the_session(error: &(dyn std::error::Error + 'static)) -> bool {
    let errors = std::iter::successors(Some(error), |error| error.source());
    let mut errors = errors.filter_map(|error| error.downcast_ref::<sqlx::Error>());
    errors.any(|error| error.as_database_error().is_some_and(is_of_session))
}

/// The session is unusable: its server was demoted, another call left a failed transaction, its
/// prepared statements are missing or not its own, or their results have changed.
fn is_of_session(error: &dyn DatabaseError) -> bool {
    match error.code().as_deref() {
        Some("25006" | "25P02" | "26000" | "42P05") => true,
        // "cached plan must not change result type", in whatever language.
        Some("0A000") => error
            .try_downcast_ref::<PgDatabaseError>()
            .and_then(PgDatabaseError::routine)
            .is_some_and(|routine| routine == "RevalidateCachedQuery"),
        _ => false,
    }
}

fn classify_sqlstate(sqlstate: &str) -> ErrorClass {
    match sqlstate {
        // Too many connections.
        "53300" => ErrorClass::Transient,
        // A lock, or a statement, took longer than the session allows.
        "55P03" | "57014" => ErrorClass::Limit,
        _ => match sqlstate.get(..2) {
            // Connection, rollback (deadlock, serialisation), operator intervention.
            Some("08" | "40" | "57") => ErrorClass::Transient,
            // Resources, system.
            Some("53" | "58") => ErrorClass::Limit,
            // Text or JSON that Postgres can't store; more than `jsonb` can hold.
            Some("22" | "54") => ErrorClass::Data,
            _ => ErrorClass::Other,
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A database error with nothing but a SQLSTATE.
    #[derive(Debug)]
    struct Sqlstate(&'static str);

    impl fmt::Display for Sqlstate {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Sqlstate {}

    impl DatabaseError for Sqlstate {
        fn message(&self) -> &'static str {
            "the message"
        }

        fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }
    }

    pub(crate) fn sqlstate(code: &'static str) -> CallError {
        sqlx::Error::Database(Box::new(Sqlstate(code))).into()
    }

    #[test]
    fn every_code_is_found_by_its_sqlstate() {
        for code in RefusalCode::ALL {
            assert_eq!(sqlstate(code.sqlstate()).refusal(), Some(code));
        }
        assert_eq!(sqlstate("PF099").refusal(), None);
    }

    #[test]
    fn a_refusal_says_message_code_and_hint() {
        let refusal = Refusal {
            code: RefusalCode::UnknownFlow,
            message: "flow `a` is unknown".to_owned(),
            hint: Some("start a worker for it first".to_owned()),
            constraint: None,
        };
        assert_eq!(
            refusal.to_string(),
            "flow `a` is unknown (PF001); hint: start a worker for it first"
        );
    }

    #[test]
    fn a_session_that_has_turned_bad_is_left_and_one_that_answers_is_not() {
        for code in ["25006", "25P02", "26000", "42P05"] {
            let error = sqlstate(code);
            assert!(
                error.spoils_connection() && blames_the_session(&error),
                "{code}"
            );
        }
        for code in ["PF002", "40P01", "22P05", "0A000", "57014"] {
            let error = sqlstate(code);
            assert!(
                !error.spoils_connection() && !blames_the_session(&error),
                "{code}"
            );
        }
        // What became of the call is not known.
        let lost = CallError::from(sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into()));
        assert!(lost.spoils_connection() && !blames_the_session(&lost));
    }

    #[test]
    fn errors_are_classified_by_what_helps() {
        for (code, class) in [
            ("08006", ErrorClass::Transient),
            ("40P01", ErrorClass::Transient),
            ("57P01", ErrorClass::Transient),
            ("53300", ErrorClass::Transient),
            ("25006", ErrorClass::Transient),
            ("55P03", ErrorClass::Limit),
            ("57014", ErrorClass::Limit),
            ("53100", ErrorClass::Limit),
            ("53400", ErrorClass::Limit),
            ("58030", ErrorClass::Limit),
            ("26000", ErrorClass::Transient),
            ("22P05", ErrorClass::Data),
            ("22021", ErrorClass::Data),
            ("54000", ErrorClass::Data),
            ("54001", ErrorClass::Data),
            ("PF009", ErrorClass::Data),
            ("PF002", ErrorClass::Gone),
            ("PF003", ErrorClass::Gone),
            ("PF008", ErrorClass::Transient),
            ("PF012", ErrorClass::Other),
            ("42501", ErrorClass::Other),
            ("23514", ErrorClass::Other),
            ("P0001", ErrorClass::Other),
        ] {
            assert_eq!(sqlstate(code).class(), class, "{code}");
        }
        let lost = CallError::from(sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into()));
        assert!(lost.is_transient());
        assert_eq!(
            CallError::from(sqlx::Error::PoolClosed).class(),
            ErrorClass::PoolClosed
        );
    }
}
