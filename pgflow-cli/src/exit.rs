//! The exit codes of the command.

use std::process::ExitCode;

/// The exit code; `--help` lists the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    /// Also the exit code of clap, and of a removal without a confirmation.
    Usage = 2,
    NotFound = 3,
    NotReady = 4,
    RunFailed = 5,
    NotCovered = 6,
    NotInTime = 7,
    /// The code that a shell uses for ctrl-c. While watching a run, 0 would mean that it has
    /// completed.
    Interrupted = 130,
}

/// For the end of `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done
  1    an error: the database can't be reached, or refused
  2    wrong usage, or a removal that was not confirmed
  3    no such flow, run, step or worker function
  4    the database is not ready: it needs `pgflow migrate`, or is newer than this command
  5    the run that was asked for has failed
  6    work waits in a queue that no live worker serves
  7    workers did not stop, or did not come back, in the time that they were given
  130  ctrl-c, before the run that was watched had ended";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
