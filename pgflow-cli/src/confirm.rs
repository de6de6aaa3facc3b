//! Questions before data is removed permanently. Standard output is reserved for results, so they
//! appear on standard error.

use std::io::{self, IsTerminal as _, Write as _};

use pgflow_runtime::printable::printable;

use crate::failure::Failure;

/// Refuses when there is no terminal to ask on.
pub(crate) fn require_terminal() -> Result<(), Failure> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "nobody can be asked for confirmation; expected a terminal, or --yes; nothing was removed",
    ))
}

/// Asks, and reads one line; nothing at the end of the input.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    write!(io::stderr(), "{} ", printable(question))?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Asks for yes; anything else is no.
pub(crate) fn is_yes(question: &str) -> io::Result<bool> {
    let answer = ask(&format!("{question} [y/N]"))?;
    Ok(["y", "yes"].contains(&answer.to_lowercase().as_str()))
}

/// Returns the failure of a refused confirmation.
pub(crate) fn declined() -> Failure {
    Failure::usage("not confirmed; nothing was removed")
}
