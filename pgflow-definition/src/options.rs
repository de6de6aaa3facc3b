//! Options of flows and steps: defaults and bounds.

/// Attempts of a task when neither step nor flow says otherwise.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 3;
/// Seconds that the delays between attempts grow from, when neither step nor flow says otherwise.
pub const DEFAULT_BASE_DELAY: u32 = 5;
/// The longest delay between attempts in seconds, when neither step nor flow says otherwise.
pub const DEFAULT_MAX_DELAY: u32 = 3600;
/// Seconds for which a task may be postponed without an attempt that counts, when neither step nor
/// flow says otherwise.
pub const DEFAULT_GIVE_UP_AFTER: u32 = 86_400;
/// Seconds that an attempt may take, when neither step nor flow says otherwise.
pub const DEFAULT_TIMEOUT: u32 = 60;

/// The timeout of an attempt that may take as long as it needs: it ends when its handler returns,
/// or with its worker. In attributes: `timeout = "none"`.
pub const NO_TIMEOUT: u32 = MAX_OPTION;

/// The largest value of any option: Postgres stores them as `integer`.
pub const MAX_OPTION: u32 = i32::MAX.cast_unsigned();

/// The name of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptionName {
    /// `max_attempts`
    MaxAttempts,
    /// `base_delay`
    BaseDelay,
    /// `max_delay`
    MaxDelay,
    /// `give_up_after`
    GiveUpAfter,
    /// `timeout`
    Timeout,
    /// `start_delay`, of steps only
    StartDelay,
}

/// The value of an option is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionProblem {
    /// Below [`OptionName::minimum`].
    TooSmall,
    /// Above [`MAX_OPTION`].
    TooLarge,
}

impl OptionName {
    /// The name, as in attributes and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxAttempts => "max_attempts",
            Self::BaseDelay => "base_delay",
            Self::MaxDelay => "max_delay",
            Self::GiveUpAfter => "give_up_after",
            Self::Timeout => "timeout",
            Self::StartDelay => "start_delay",
        }
    }

    /// The smallest value that is allowed.
    pub const fn minimum(self) -> u32 {
        match self {
            Self::MaxAttempts | Self::BaseDelay | Self::MaxDelay | Self::GiveUpAfter => 1,
            Self::Timeout => 3,
            Self::StartDelay => 0,
        }
    }

    /// Returns the unit of the value.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::MaxAttempts => "attempts",
            Self::BaseDelay
            | Self::MaxDelay
            | Self::GiveUpAfter
            | Self::Timeout
            | Self::StartDelay => "seconds",
        }
    }

    /// Checks a value against the bounds.
    pub const fn check(self, value: u32) -> Result<(), OptionProblem> {
        if value < self.minimum() {
            Err(OptionProblem::TooSmall)
        } else if value > MAX_OPTION {
            Err(OptionProblem::TooLarge)
        } else {
            Ok(())
        }
    }
}
