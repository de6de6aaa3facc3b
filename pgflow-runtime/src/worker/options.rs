//! The options of a worker, and what is wrong with them.

use std::{fmt, ops::RangeInclusive, time::Duration};

use crate::migrate::Release;

const CONCURRENCY: RangeInclusive<usize> = 1..=10_000;
/// The time that a draining worker may need: the wait for its heartbeat, its shutdown timeout, and
/// recording its last results.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(45);
const SHORTEST_POLL: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_hours(1);
/// A heartbeat comes every 5 s, and may be late.
const SHORTEST_ABANDON: Duration = Duration::from_secs(6);
const LONGEST_FUNCTION_NAME: usize = 128;
const LONGEST_BUILD: usize = 128;

/// The party that restarts a worker's process after its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartMode {
    /// A supervisor outside the database: the operating system's, a container platform.
    #[default]
    Process,
    /// The database: `pgflow.ensure_workers()` invokes the function's URL while it has no live
    /// worker.
    Http,
}

impl StartMode {
    /// As the database calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Http => "http",
        }
    }
}

/// The options that a worker was given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) concurrency: Option<usize>,
    pub(crate) poll_interval: Option<Duration>,
    pub(crate) shutdown_timeout: Option<Duration>,
    pub(crate) drain_timeout: Option<Duration>,
    pub(crate) function_name: Option<String>,
    pub(crate) start_mode: Option<StartMode>,
    pub(crate) listen: Option<bool>,
    pub(crate) abandon_after: Option<Duration>,
    pub(crate) build: Option<String>,
    pub(crate) migrate: Option<bool>,
    pub(crate) release: Option<Release>,
}

impl Settings {
    /// Takes from others what is not set here.
    pub(crate) fn or(self, others: &Self) -> Self {
        Self {
            concurrency: self.concurrency.or(others.concurrency),
            poll_interval: self.poll_interval.or(others.poll_interval),
            shutdown_timeout: self.shutdown_timeout.or(others.shutdown_timeout),
            drain_timeout: self.drain_timeout.or(others.drain_timeout),
            function_name: self.function_name.or_else(|| others.function_name.clone()),
            start_mode: self.start_mode.or(others.start_mode),
            listen: self.listen.or(others.listen),
            abandon_after: self.abandon_after.or(others.abandon_after),
            build: self.build.or_else(|| others.build.clone()),
            migrate: self.migrate.or(others.migrate),
            release: self.release.or(others.release),
        }
    }

    /// The options, with defaults for what is not set.
    pub(crate) fn options(&self, function_name: impl FnOnce() -> String) -> WorkerOptions {
        WorkerOptions {
            concurrency: self.concurrency.unwrap_or(10),
            poll_interval: self.poll_interval.unwrap_or(Duration::from_secs(1)),
            shutdown_timeout: self.shutdown_timeout.unwrap_or(Duration::from_secs(30)),
            drain_timeout: self.drain_timeout.unwrap_or(DRAIN_TIMEOUT),
            function_name: self.function_name.clone().unwrap_or_else(function_name),
            start_mode: self.start_mode.unwrap_or_default(),
            listen: self.listen.unwrap_or(true),
            abandon_after: self.abandon_after,
            build: self.build.clone(),
            migrate: self.migrate.unwrap_or(false),
            release: self.release.unwrap_or(Release::THIS),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WorkerOptions {
    pub(crate) concurrency: usize,
    pub(crate) poll_interval: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) function_name: String,
    pub(crate) start_mode: StartMode,
    pub(crate) listen: bool,
    /// None: attempts continue during a database outage.
    pub(crate) abandon_after: Option<Duration>,
    /// The build of the application, if it has a name.
    pub(crate) build: Option<String>,
    pub(crate) migrate: bool,
    /// The release whose migrations and protocol the database must have.
    pub(crate) release: Release,
}

impl WorkerOptions {
    /// Everything that is wrong, in the order of the fields.
    pub(crate) fn problems(&self) -> Vec<OptionProblem> {
        let mut problems = Vec::new();
        let mut check = |ok: bool, option, message: &dyn Fn() -> String| {
            if !ok {
                problems.push(OptionProblem {
                    worker: None,
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
        check(self.drain_timeout <= LONGEST, "drain_timeout", &|| {
            format!("{:?}; expected at most {LONGEST:?}", self.drain_timeout)
        });
        check(
            self.abandon_after
                .is_none_or(|after| after >= SHORTEST_ABANDON),
            "abandon_after",
            &|| {
                format!(
                    "{:?}; expected at least {SHORTEST_ABANDON:?}: a heartbeat comes every 5 s",
                    self.abandon_after.unwrap_or_default()
                )
            },
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
        check(self.build.as_deref().is_none_or(is_build), "build", &|| {
            format!(
                "{:?}; expected 1 to {LONGEST_BUILD} characters, none of them a control character",
                self.build.as_deref().unwrap_or_default()
            )
        });
        problems
    }
}

fn is_function_name(name: &str) -> bool {
    (1..=LONGEST_FUNCTION_NAME).contains(&name.chars().count())
        && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn is_build(build: &str) -> bool {
    (1..=LONGEST_BUILD).contains(&build.chars().count()) && !build.chars().any(char::is_control)
}

/// An option of a worker is out of its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    worker: Option<String>,
    option: &'static str,
    message: String,
}

impl OptionProblem {
    /// Nothing was added to a set of workers.
    pub(crate) fn no_workers() -> Self {
        Self {
            worker: None,
            option: "add",
            message: "never called; expected at least one worker".to_owned(),
        }
    }

    /// The worker would continue with attempts for longer than others wait before they take it for
    /// dead.
    pub(crate) fn abandons_too_late(after: Duration, lost_after: Duration) -> Self {
        Self {
            worker: None,
            option: "abandon_after",
            message: format!(
                "{after:?}; expected less than {lost_after:?}, the time after which this database takes a worker \
                 for dead (`lost_after` in pgflow.installation)"
            ),
        }
    }

    /// Names the worker of the option, if there are several.
    pub(crate) fn of(mut self, worker: String) -> Self {
        self.worker = Some(worker);
        self
    }

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
        write!(f, "`{}` ", self.option)?;
        if let Some(worker) = &self.worker {
            write!(f, "of {worker} ")?;
        }
        write!(f, "is {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(function_name: &str) -> WorkerOptions {
        Settings::default().options(|| function_name.to_owned())
    }

    fn options_with_problems(options: &WorkerOptions) -> Vec<&'static str> {
        options
            .problems()
            .iter()
            .map(OptionProblem::option)
            .collect()
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(defaults("crate_audit").problems(), []);
    }

    #[test]
    fn the_bounds_are_valid() {
        let mut options = defaults(&"f".repeat(128));
        options.concurrency = 1;
        options.poll_interval = Duration::from_millis(10);
        options.shutdown_timeout = Duration::ZERO;
        options.drain_timeout = Duration::ZERO;
        assert_eq!(options.problems(), []);
        options.concurrency = 10_000;
        options.poll_interval = Duration::from_hours(1);
        options.shutdown_timeout = Duration::from_hours(1);
        options.drain_timeout = Duration::from_hours(1);
        assert_eq!(options.problems(), []);
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let mut options = defaults("");
        options.concurrency = 0;
        options.poll_interval = Duration::from_millis(9);
        options.shutdown_timeout = Duration::from_secs(3601);
        options.drain_timeout = Duration::from_secs(3601);
        options.abandon_after = Some(Duration::from_millis(5999));
        options.build = Some(String::new());
        assert_eq!(
            options_with_problems(&options),
            [
                "concurrency",
                "poll_interval",
                "shutdown_timeout",
                "drain_timeout",
                "abandon_after",
                "function_name",
                "build"
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
                options_with_problems(&defaults(name)),
                ["function_name"],
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_build_can_be_printed_and_is_not_too_long() {
        let mut options = defaults("f");
        for build in ["1.0.0", "release 7 (é)", &"b".repeat(128)] {
            options.build = Some(build.to_owned());
            assert_eq!(options.problems(), [], "{build:?}");
        }
        for build in ["", "1\n", "\u{9b}", &"b".repeat(129)] {
            options.build = Some(build.to_owned());
            assert_eq!(options_with_problems(&options), ["build"], "{build:?}");
        }
        options.build = Some("1\n".to_owned());
        assert_eq!(
            options.problems()[0].to_string(),
            "`build` is \"1\\n\"; expected 1 to 128 characters, none of them a control character"
        );
    }

    #[test]
    fn what_is_set_comes_before_what_others_set_and_that_before_the_defaults() {
        let own = Settings {
            concurrency: Some(2),
            ..Settings::default()
        };
        let others = Settings {
            concurrency: Some(7),
            poll_interval: Some(Duration::from_secs(7)),
            shutdown_timeout: Some(Duration::from_secs(8)),
            drain_timeout: Some(Duration::from_secs(9)),
            migrate: Some(true),
            function_name: Some("others".to_owned()),
            start_mode: Some(StartMode::Http),
            listen: Some(false),
            abandon_after: Some(Duration::from_secs(10)),
            build: Some("7".to_owned()),
            release: None,
        };
        let options = own.or(&others).options(|| unreachable!());
        assert_eq!(
            (
                options.concurrency,
                options.poll_interval,
                options.shutdown_timeout
            ),
            (2, Duration::from_secs(7), Duration::from_secs(8))
        );
        assert_eq!(
            (
                options.drain_timeout,
                options.migrate,
                options.function_name.as_str()
            ),
            (Duration::from_secs(9), true, "others")
        );
        assert_eq!(
            (options.start_mode, options.listen),
            (StartMode::Http, false)
        );
        assert_eq!(options.abandon_after, Some(Duration::from_secs(10)));
        assert_eq!(options.build.as_deref(), Some("7"));
    }

    #[test]
    fn a_problem_of_one_of_several_workers_says_whose_it_is() {
        let mut options = defaults("f");
        options.concurrency = 0;
        let problem = options.problems().remove(0).of("step `embed`".to_owned());
        assert_eq!(
            problem.to_string(),
            "`concurrency` of step `embed` is 0 tasks at a time; expected 1 to 10000"
        );
        assert_eq!(
            OptionProblem::no_workers().to_string(),
            "`add` is never called; expected at least one worker"
        );
    }
}
