//! The reason why an attempt failed, and its consequence for the next one.

use std::{error::Error, fmt, time::Duration};

use super::{
    Unreadable,
    marker::{self, Retry},
    message,
};
use crate::contained::contain;

/// Any error, boxed.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// The return type of a step.
pub type StepResult<T> = Result<T, StepError>;

/// The reason why an attempt failed, and its consequence for the next one.
///
/// `?` makes one from every standard error, `String`, `&str` and `anyhow::Error`: the task is then
/// retried after its ordinary backoff, while attempts are left. [`postpone`](Self::postpone) is for
/// a refusal, as by a rate limit: the attempt does not count. [`retry_after`](Self::retry_after)
/// chooses the delay after a failure, and [`permanent`](Self::permanent) rules further attempts
/// out. Functions with another error type use [`Postpone`](super::Postpone),
/// [`RetryAfter`](super::RetryAfter) and [`Permanent`](super::Permanent) instead. They are errors
/// themselves and are found anywhere in a chain of sources.
///
/// A step that returns `anyhow::Result` can use all of them, too: `?`, `.into()` and `bail!` turn a
/// `StepError` into an `anyhow::Error` that keeps the decision, under any context. Bare, as in
/// `Err(StepError::permanent(..))`, it is of another type than that step returns; write
/// `Err(StepError::permanent(..).into())`.
///
/// ```
/// use std::time::Duration;
/// # use pgflow_runtime::flow as pgflow;
/// use pgflow::{StepError, StepResult};
///
/// fn check(status: u16, body: &str) -> StepResult<u64> {
///     match status {
///         429 => Err(StepError::postpone(Duration::from_secs(30), "too many requests")),
///         503 => Err(StepError::retry_after(Duration::from_secs(60), "down for maintenance")),
///         404 => Err(StepError::permanent("no such page")),
///         _ => Ok(body.parse()?),
///     }
/// }
///
/// assert_eq!(check(429, "").unwrap_err().postponed_for(), Some(Duration::from_secs(30)));
/// assert_eq!(check(503, "").unwrap_err().retry_delay(), Some(Duration::from_secs(60)));
/// assert!(check(404, "").unwrap_err().is_permanent());
/// assert_eq!(check(200, "x").unwrap_err().message(), "invalid digit found in string");
///
/// fn fetch(status: u16) -> anyhow::Result<u64> {
///     match status {
///         404 => Err(StepError::permanent("no such page").into()),
///         _ => Ok(check(status, "7")?),
///     }
/// }
///
/// assert!(StepError::from(fetch(404).unwrap_err()).is_permanent());
/// let limited = StepError::from(fetch(429).unwrap_err());
/// assert_eq!(limited.postponed_for(), Some(Duration::from_secs(30)));
/// ```
// Implements neither `Error` nor `Into<BoxError>`: the blanket `From` below would overlap with
// `From<T> for T`.
#[derive(Debug)]
pub struct StepError {
    cause: BoxError,
    retry: Retry,
}

impl StepError {
    /// Not now: something refused the call, and the task has not been tried.
    ///
    /// The attempt counts neither against `max_attempts` nor in the back-off. The task is due again
    /// after `after`, and up to a tenth more at random, so that tasks that were refused together do
    /// not come back together. A task that has only been postponed for longer than its flow's or
    /// step's `give_up_after` (a day by default) fails with that reason.
    ///
    /// A time of more than 60 years is refused: the attempt then fails with the ordinary back-off,
    /// and the stored message begins with the reason.
    pub fn postpone(after: Duration, cause: impl Into<BoxError>) -> Self {
        let (cause, retry) = Retry::postponed(after, cause.into());
        Self { cause, retry }
    }

    /// Retries after `delay` instead of the ordinary backoff, while attempts are left.
    ///
    /// The delay is rounded up to whole seconds. One of more than `i32::MAX` seconds (68 years) is
    /// refused: the attempt then fails with the ordinary back-off, and the stored message begins
    /// with the reason.
    pub fn retry_after(delay: Duration, cause: impl Into<BoxError>) -> Self {
        let (cause, retry) = Retry::after(delay, cause.into());
        Self { cause, retry }
    }

    /// Fail permanently: no attempt follows, however many are left.
    pub fn permanent(cause: impl Into<BoxError>) -> Self {
        Self {
            cause: cause.into(),
            retry: Retry::Never,
        }
    }

    /// Returns the stored message: the chain `outer: inner: root`, cut at 8 KiB, without the
    /// character U+0000.
    pub fn message(&self) -> String {
        message::chain(&*self.cause)
    }

    /// The delay before the next attempt, in whole seconds, if the attempt failed and the handler
    /// chose one.
    pub fn retry_delay(&self) -> Option<Duration> {
        self.retry.delay()
    }

    /// The time that the handler postponed its task for, if it did.
    pub fn postponed_for(&self) -> Option<Duration> {
        match self.retry {
            Retry::Postponed(after) => Some(after),
            Retry::Ordinary | Retry::After(_) | Retry::Never => None,
        }
    }

    /// Returns whether further attempts are ruled out.
    pub fn is_permanent(&self) -> bool {
        self.retry.is_permanent()
    }

    /// The value that could not be read, where that is why the attempt failed.
    pub(crate) fn unreadable(&mut self) -> Option<&mut Unreadable> {
        self.cause.downcast_mut()
    }

    pub(crate) fn retry(&self) -> Retry {
        self.retry
    }

    pub(super) fn into_parts(self) -> (BoxError, Retry) {
        (self.cause, self.retry)
    }

    /// The error that this was made from.
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.cause
    }
}

impl<E: Into<BoxError>> From<E> for StepError {
    fn from(error: E) -> Self {
        let cause = error.into();
        // A `source` that panics does so again when the error is printed, and is reported there.
        let retry = contain(|| marker::find(&*cause)).unwrap_or(Retry::Ordinary);
        Self { cause, retry }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}
