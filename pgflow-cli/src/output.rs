//! Standard output, and what is said beside it on standard error.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a line; a reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_if_read(text).map(drop)
}

/// Writes a line, and says whether anybody reads on.
pub(crate) fn print_if_read(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => Ok(written.map(|()| true)?),
    }
}

/// Writes a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Writes a line to standard error. That nobody reads it (`2>&1 | head`) must not end what the command does.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
