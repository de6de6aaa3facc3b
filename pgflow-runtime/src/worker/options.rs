//! The options of a worker, and what is wrong with them.

use std::{fmt, ops::RangeInclusive, time::Duration};

const CONCURRENCY: RangeInclusive<usize> = 1..=10_000;
const SHORTEST_POLL: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_hours(1);
const LONGEST_FUNCTION_NAME: usize = 128;

#[derive(Debug, Clone)]
pub(crate) struct WorkerOptions {
    pub(crate) concurrency: usize,
    pub(crate) poll_interval: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) function_name: String,
    pub(crate) migrate: bool,
}

impl WorkerOptions {
    pub(crate) fn new(function_name: &str) -> Self {
        Self {
            concurrency: 10,
            poll_interval: Duration::from_secs(1),
            shutdown_timeout: Duration::from_secs(30),
            function_name: function_name.to_owned(),
            migrate: false,
        }
    }

    /// Everything that is wrong, in the order of the fields.
    pub(crate) fn problems(&self) -> Vec<OptionProblem> {
        let mut problems = Vec::new();
        let mut check = |ok: bool, option, message: &dyn Fn() -> String| {
            if !ok {
                problems.push(OptionProblem {
                    option,
                    message: message(),
                });
            }
        };
        check(
            CONCURRENCY.contains(&self.concurrency),
            "concurrency",
            &|| {
                format!(
                    "{} tasks at a time; expected {} to {}",
                    self.concurrency,
                    CONCURRENCY.start(),
                    CONCURRENCY.end()
                )
            },
        );
        check(
            (SHORTEST_POLL..=LONGEST).contains(&self.poll_interval),
            "poll_interval",
            &|| {
                format!(
                    "{:?}; expected {SHORTEST_POLL:?} to {LONGEST:?}",
                    self.poll_interval
                )
            },
        );
        check(
            self.shutdown_timeout <= LONGEST,
            "shutdown_timeout",
            &|| format!("{:?}; expected at most {LONGEST:?}", self.shutdown_timeout),
        );
        check(
            is_function_name(&self.function_name),
            "function_name",
            &|| {
                format!(
                    "{:?}; expected 1 to {LONGEST_FUNCTION_NAME} characters, none of them a space or a control character",
                    self.function_name
                )
            },
        );
        problems
    }
}

fn is_function_name(name: &str) -> bool {
    (1..=LONGEST_FUNCTION_NAME).contains(&name.chars().count())
        && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// An option of a worker is out of its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    option: &'static str,
    message: String,
}

impl OptionProblem {
    /// The name of the builder's function that set the option.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// The value, and what was expected.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for OptionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {}", self.option, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_with_problems(options: &WorkerOptions) -> Vec<&'static str> {
        options
            .problems()
            .iter()
            .map(OptionProblem::option)
            .collect()
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(WorkerOptions::new("crate_audit").problems(), []);
    }

    #[test]
    fn the_bounds_are_valid() {
        let mut options = WorkerOptions::new(&"f".repeat(128));
        options.concurrency = 1;
        options.poll_interval = Duration::from_millis(10);
        options.shutdown_timeout = Duration::ZERO;
        assert_eq!(options.problems(), []);
        options.concurrency = 10_000;
        options.poll_interval = Duration::from_hours(1);
        options.shutdown_timeout = Duration::from_hours(1);
        assert_eq!(options.problems(), []);
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let mut options = WorkerOptions::new("");
        options.concurrency = 0;
        options.poll_interval = Duration::from_millis(9);
        options.shutdown_timeout = Duration::from_secs(3601);
        assert_eq!(
            options_with_problems(&options),
            [
                "concurrency",
                "poll_interval",
                "shutdown_timeout",
                "function_name"
            ]
        );
        assert_eq!(
            options.problems()[0].to_string(),
            "`concurrency` is 0 tasks at a time; expected 1 to 10000"
        );
    }

    #[test]
    fn a_function_name_has_no_spaces_and_is_not_too_long() {
        for name in ["a b", "a\n", " ", &"f".repeat(129)] {
            assert_eq!(
                options_with_problems(&WorkerOptions::new(name)),
                ["function_name"],
                "{name:?}"
            );
        }
    }
}
