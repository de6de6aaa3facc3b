//! Marks an error for its way through code that knows nothing of steps.

use std::{error::Error, fmt, time::Duration};

use super::{BoxError, StepError, message};

/// The consequence of an attempt that returned no output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It failed: the ordinary back-off.
    Ordinary,
    /// It failed: this many seconds; fits a Postgres `int`.
    After(u32),
    /// It was refused for now and does not count: this time, which [`LONGEST_POSTPONEMENT`] bounds.
    Postponed(Duration),
    /// It failed: no further attempt.
    Never,
}

/// With the tenth that is added at random it still fits a Postgres `int` of seconds.
const LONGEST_POSTPONEMENT: Duration = Duration::from_secs(1_900_000_000);

impl Retry {
    /// `delay` in whole seconds, or the ordinary back-off and a cause that says why the delay was
    /// refused.
    pub(super) fn after(delay: Duration, cause: BoxError) -> (BoxError, Self) {
        let seconds = delay
            .as_secs()
            .saturating_add(u64::from(delay.subsec_nanos() > 0));
        match u32::try_from(seconds) {
            Ok(seconds) if seconds <= i32::MAX.unsigned_abs() => (cause, Self::After(seconds)),
            _ => (
                Box::new(RefusedDelay {
                    what: "a retry delay",
                    seconds,
                    limit: i32::MAX.unsigned_abs().into(),
                    cause,
                }),
                Self::Ordinary,
            ),
        }
    }

    /// The time to postpone for, or the ordinary back-off and a cause that says why the time was
    /// refused.
    pub(super) fn postponed(after: Duration, cause: BoxError) -> (BoxError, Self) {
        if after <= LONGEST_POSTPONEMENT {
            return (cause, Self::Postponed(after));
        }
        let refused = RefusedDelay {
            what: "a postponement",
            seconds: after.as_secs(),
            limit: LONGEST_POSTPONEMENT.as_secs(),
            cause,
        };
        (Box::new(refused), Self::Ordinary)
    }

    /// Returns whether another attempt is ruled out.
    pub(crate) fn is_permanent(self) -> bool {
        self == Self::Never
    }

    /// The delay that was chosen for an attempt after one that failed.
    pub(crate) fn delay(self) -> Option<Duration> {
        match self {
            Self::After(seconds) => Some(Duration::from_secs(seconds.into())),
            Self::Ordinary | Self::Postponed(_) | Self::Never => None,
        }
    }
}

#[derive(Debug)]
struct RefusedDelay {
    what: &'static str,
    seconds: u64,
    limit: u64,
    cause: BoxError,
}

impl fmt::Display for RefusedDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} s is refused, the limit is {} s; the ordinary back-off applies",
            self.what, self.seconds, self.limit
        )
    }
}

impl Error for RefusedDelay {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

/// An error that asks for its own delay before the next attempt, whatever it is wrapped in
/// afterwards.
///
/// For helpers that return `anyhow::Result` or an error type of their own; a step itself can return
/// [`StepError::retry_after`](super::StepError::retry_after), whose rules for the delay hold here
/// too.
///
/// ```
/// use std::{io, time::Duration};
/// # use pgflow_runtime::flow as pgflow;
/// use pgflow::{RetryAfter, StepError};
///
/// fn fetch() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     Err(io::Error::other(RetryAfter::new(Duration::from_secs(30), "too many requests")))?
/// }
///
/// let error = StepError::from(fetch().unwrap_err());
/// assert_eq!(error.retry_delay(), Some(Duration::from_secs(30)));
/// assert_eq!(error.message(), "too many requests");
/// ```
#[derive(Debug)]
pub struct RetryAfter(Marker);

impl RetryAfter {
    /// Wraps `cause`, which keeps its message and its sources.
    pub fn new(delay: Duration, cause: impl Into<BoxError>) -> Self {
        let (cause, retry) = Retry::after(delay, cause.into());
        Self(Marker { cause, retry })
    }
}

/// An error that postpones its task without counting the attempt, whatever it is wrapped in
/// afterwards.
///
/// The counterpart of [`StepError::postpone`](super::StepError::postpone) for other error types;
/// see [`RetryAfter`].
#[derive(Debug)]
pub struct Postpone(Marker);

impl Postpone {
    /// Wraps `cause`, which keeps its message and its sources.
    pub fn new(after: Duration, cause: impl Into<BoxError>) -> Self {
        let (cause, retry) = Retry::postponed(after, cause.into());
        Self(Marker { cause, retry })
    }
}

/// An error that rules further attempts out, whatever it is wrapped in afterwards.
///
/// The counterpart of [`StepError::permanent`](super::StepError::permanent) for other error types;
/// see [`RetryAfter`].
#[derive(Debug)]
pub struct Permanent(Marker);

impl Permanent {
    /// Wraps `cause`, which keeps its message and its sources.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(Marker {
            cause: cause.into(),
            retry: Retry::Never,
        })
    }
}

impl From<StepError> for anyhow::Error {
    /// Keeps what was decided about further attempts, whatever context is added.
    fn from(error: StepError) -> Self {
        let (cause, retry) = error.into_parts();
        let marker = Marker { cause, retry };
        match retry {
            Retry::Never => Self::new(Permanent(marker)),
            Retry::Postponed(_) => Self::new(Postpone(marker)),
            Retry::Ordinary | Retry::After(_) => Self::new(RetryAfter(marker)),
        }
    }
}

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cause.fmt(f)
    }
}

impl fmt::Display for Postpone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cause.fmt(f)
    }
}

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cause.fmt(f)
    }
}

impl Error for RetryAfter {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl Error for Postpone {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl Error for Permanent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// The link of a chain that carries the mark.
///
/// It stands behind the public wrapper, as its source, because the outermost link of a chain may be
/// out of reach: an `anyhow::Error` turned into a `BoxError` is a private type that does not
/// downcast, but keeps its sources.
#[derive(Debug)]
struct Marker {
    cause: BoxError,
    retry: Retry,
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry {
            Retry::Ordinary => f.write_str("to be tried again"),
            Retry::After(seconds) => write!(f, "to be tried again after {seconds} s"),
            Retry::Postponed(after) => write!(f, "postponed for {after:?}"),
            Retry::Never => f.write_str("not to be tried again"),
        }
    }
}

impl Error for Marker {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

/// Returns the consequence that the outermost marker in the chain asks for.
pub(super) fn find(error: &(dyn Error + 'static)) -> Retry {
    message::links(error)
        .find_map(|link| link.downcast_ref::<Marker>())
        .map_or(Retry::Ordinary, |marker| marker.retry)
}

/// Returns whether a link only carries a mark and has no text of its own.
pub(super) fn is_marker(link: &(dyn Error + 'static)) -> bool {
    link.is::<Marker>()
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    fn limited() -> RetryAfter {
        RetryAfter::new(Duration::from_millis(1500), "too many requests")
    }

    #[test]
    fn a_marker_is_found_inside_an_anyhow_error() {
        let bare = anyhow::Error::new(limited());
        let wrapped = Err::<(), _>(limited())
            .context("fetching the index")
            .context("auditing")
            .unwrap_err();
        assert_eq!(
            StepError::from(bare).retry_delay(),
            Some(Duration::from_secs(2))
        );
        let error = StepError::from(wrapped);
        assert_eq!(error.retry_delay(), Some(Duration::from_secs(2)));
        assert_eq!(
            error.message(),
            "auditing: fetching the index: too many requests"
        );
    }

    #[test]
    fn a_permanent_marker_keeps_the_sources_of_its_cause() {
        let cause = anyhow::anyhow!("connection refused").context("no index");
        let error = StepError::from(anyhow::Error::new(Permanent::new(cause)));
        assert!(error.is_permanent());
        assert_eq!(error.message(), "no index: connection refused");
    }

    #[test]
    fn a_step_error_keeps_its_decision_in_an_anyhow_error() {
        fn convert(error: StepError) -> anyhow::Result<()> {
            Err(error)?
        }
        fn bail(error: StepError) -> anyhow::Result<()> {
            anyhow::bail!(error)
        }
        let cause = || anyhow::anyhow!("connection refused").context("no index");
        for through in [convert, bail, |error: StepError| Err(error.into())] {
            let back = |error| StepError::from(through(error).context("auditing").unwrap_err());
            let permanent = back(StepError::permanent(cause()));
            assert!(permanent.is_permanent());
            assert_eq!(
                permanent.message(),
                "auditing: no index: connection refused"
            );
            let later = back(StepError::retry_after(Duration::from_secs(30), cause()));
            assert_eq!(later.retry_delay(), Some(Duration::from_secs(30)));
            let postponed = back(StepError::postpone(Duration::from_millis(1500), cause()));
            assert_eq!(postponed.postponed_for(), Some(Duration::from_millis(1500)));
            assert_eq!(postponed.retry_delay(), None);
            assert_eq!(postponed.message(), permanent.message());
            let ordinary = back(StepError::from(cause()));
            assert_eq!(ordinary.postponed_for(), None);
            assert_eq!(ordinary.retry_delay(), None);
            assert!(!ordinary.is_permanent());
            assert_eq!(ordinary.message(), permanent.message());
        }
    }

    #[test]
    fn a_decision_that_was_overruled_is_not_found_again() {
        let refused = StepError::retry_after(Duration::MAX, Permanent::new("down"));
        let error = StepError::from(anyhow::Error::from(refused));
        assert!(!error.is_permanent());
        assert_eq!(error.retry_delay(), None);
    }

    #[test]
    fn the_outermost_marker_wins() {
        let error = StepError::from(Permanent::new(limited()));
        assert!(error.is_permanent());
        assert_eq!(error.retry_delay(), None);
    }

    #[test]
    fn delays_are_whole_seconds_within_an_int() {
        let delay = |delay| StepError::retry_after(delay, "x").retry_delay();
        let limit = u64::from(i32::MAX.unsigned_abs());
        assert_eq!(delay(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(delay(Duration::from_nanos(1)), Some(Duration::from_secs(1)));
        assert_eq!(
            delay(Duration::from_secs(limit)),
            Some(Duration::from_secs(limit))
        );
        assert_eq!(
            delay(Duration::from_secs(limit) + Duration::from_nanos(1)),
            None
        );
        assert_eq!(delay(Duration::MAX), None);
    }

    #[test]
    fn a_refused_delay_is_explained() {
        let error = StepError::retry_after(Duration::from_secs(1 << 40), "down");
        assert!(!error.is_permanent());
        assert_eq!(
            error.message(),
            "a retry delay of 1099511627776 s is refused, the limit is 2147483647 s; the ordinary back-off applies: down"
        );
        let error = StepError::postpone(Duration::from_secs(1 << 40), "down");
        assert_eq!(error.postponed_for(), None);
        assert_eq!(
            error.message(),
            "a postponement of 1099511627776 s is refused, the limit is 1900000000 s; the ordinary back-off applies: down"
        );
    }

    #[test]
    fn a_postponement_is_kept_to_the_fraction_wherever_it_stands_in_the_chain() {
        let after = Duration::from_millis(250);
        let wrapped = Err::<(), _>(Postpone::new(after, "too many requests"))
            .context("fetching the index")
            .unwrap_err();
        let error = StepError::from(wrapped);
        assert_eq!(error.postponed_for(), Some(after));
        assert!(!error.is_permanent());
        assert_eq!(error.message(), "fetching the index: too many requests");
    }
}
