//! Why an attempt failed, and what that means for the next one.

use std::{error::Error, fmt, time::Duration};

use super::{
    marker::{self, Retry},
    message,
};
use crate::contained::contain;

/// Any error, boxed.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// What a step returns.
pub type StepResult<T> = Result<T, StepError>;

/// Why an attempt failed, and what that means for the next one.
///
/// `?` makes one from every standard error, `String`, `&str` and `anyhow::Error`: the task is then tried again
/// after its ordinary back-off, as long as attempts are left. [`retry_after`](Self::retry_after) chooses the delay,
/// [`permanent`](Self::permanent) rules further attempts out. Functions with another error type say the same with
/// [`RetryAfter`](super::RetryAfter) and [`Permanent`](super::Permanent), which are errors themselves and are found
/// wherever they stand in a chain of sources.
///
/// A step that returns `anyhow::Result` can use all of them, too: `?`, `.into()` and `bail!` turn a `StepError` into an `anyhow::Error` that
/// keeps the decision, under any context. Bare, as in `Err(StepError::permanent(..))`, it is of another type than that step returns; write
/// `Err(StepError::permanent(..).into())`.
///
/// ```
/// use std::time::Duration;
/// # use pgflow_runtime::flow as pgflow;
/// use pgflow::{StepError, StepResult};
///
/// fn check(status: u16, body: &str) -> StepResult<u64> {
///     match status {
///         429 => Err(StepError::retry_after(Duration::from_secs(30), "too many requests")),
///         404 => Err(StepError::permanent("no such page")),
///         _ => Ok(body.parse()?),
///     }
/// }
///
/// assert_eq!(check(429, "").unwrap_err().retry_delay(), Some(Duration::from_secs(30)));
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
/// assert_eq!(limited.retry_delay(), Some(Duration::from_secs(30)));
/// ```
// Implements neither `Error` nor `Into<BoxError>`: the blanket `From` below would overlap with `From<T> for T`.
#[derive(Debug)]
pub struct StepError {
    cause: BoxError,
    retry: Retry,
}

impl StepError {
    /// Try again after `delay` instead of the ordinary back-off, as long as attempts are left.
    ///
    /// The delay is rounded up to whole seconds. One of more than `i32::MAX` seconds (68 years) is refused: the
    /// attempt then fails with the ordinary back-off, and the stored message begins with the reason.
    pub fn retry_after(delay: Duration, cause: impl Into<BoxError>) -> Self {
        let (cause, retry) = Retry::after(delay, cause.into());
        Self { cause, retry }
    }

    /// Fail for good: no attempt follows, however many are left.
    pub fn permanent(cause: impl Into<BoxError>) -> Self {
        Self {
            cause: cause.into(),
            retry: Retry::Never,
        }
    }

    /// What is stored: the chain `outer: inner: root`, cut at 8 KiB, without the character U+0000.
    pub fn message(&self) -> String {
        message::chain(&*self.cause)
    }

    /// The delay before the next attempt, in whole seconds, if the handler chose one.
    pub fn retry_delay(&self) -> Option<Duration> {
        self.retry_seconds()
            .map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// The same as Postgres takes it.
    pub(crate) fn retry_seconds(&self) -> Option<u32> {
        match self.retry {
            Retry::After(seconds) => Some(seconds),
            Retry::Ordinary | Retry::Never => None,
        }
    }

    /// Whether further attempts are ruled out.
    pub fn is_permanent(&self) -> bool {
        self.retry == Retry::Never
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
