//! Standard output, and standard error beside it.

use std::io::{self, Write};

use pgflow_runtime::printable::printable;
use serde::Serialize;

use crate::failure::Failure;

/// Lines for people. Whatever stands in a line, it stays one line and can't drive a terminal: names
/// and error texts come from the database, where others wrote them. Everything that people read
/// goes through this type, so no command can forget to escape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(Vec<String>);

impl Text {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.0.push(printable(line.as_ref()).into_owned());
    }

    pub(crate) fn blank(&mut self) {
        self.0.push(String::new());
    }

    /// Adds a label and a value. Further lines of the value are indented below the first one, so
    /// that none of them looks like a line of its own.
    pub(crate) fn field(&mut self, label: &str, value: &str) {
        // Harmless, and common in logs.
        let value = &value.replace('\t', "    ");
        // An empty value has no first line.
        let mut lines = value.lines().chain(value.is_empty().then_some(""));
        self.line(format!("{label}{}", lines.next().unwrap_or_default()));
        let indent = " ".repeat(label.chars().count().max(2));
        for line in lines {
            self.line(format!("{indent}{line}"));
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn joined(&self) -> String {
        self.0.join("\n")
    }
}

/// One line.
impl<T: AsRef<str>> From<T> for Text {
    fn from(line: T) -> Self {
        let mut text = Self::new();
        text.line(line);
        text
    }
}

impl<T: AsRef<str>> FromIterator<T> for Text {
    fn from_iter<I: IntoIterator<Item = T>>(lines: I) -> Self {
        let mut text = Self::new();
        lines.into_iter().for_each(|line| text.line(line));
        text
    }
}

/// Writes text for people; a reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: impl Into<Text>) -> Result<(), Failure> {
    print_if_read(text).map(drop)
}

/// Writes text for people, and returns false when the output is closed.
pub(crate) fn print_if_read(text: impl Into<Text>) -> Result<bool, Failure> {
    write_line(&text.into().joined())
}

/// Writes what programs read, as it is: JSON, SQL, a shell's script.
pub(crate) fn print_for_programs(text: &str) -> Result<bool, Failure> {
    write_line(text)
}

/// Writes a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print_for_programs(&serde_json::to_string_pretty(value)?).map(drop)
}

/// Writes to standard error. A missing reader (`2>&1 | head`) must not end what the command does.
pub(crate) fn say(text: impl Into<Text>) {
    let _ = writeln!(io::stderr(), "{}", text.into().joined());
}

/// Writes an error for programs to standard error, as it is.
pub(crate) fn say_for_programs(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn write_line(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => Ok(written.map(|()| true)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line_whatever_stands_in_it() {
        let text = Text::from("a\nb\r\u{1b}[2J\u{202e}c\u{9b}1m\u{2028}d\te");
        assert_eq!(
            text.joined(),
            r"a\nb\r\u{1b}[2J\u{202e}c\u{9b}1m\u{2028}d\te"
        );
    }

    #[test]
    fn further_lines_of_a_value_are_indented_below_it() {
        let mut text = Text::new();
        text.field("error  ", "first\nrun 1  completed\n\u{7}last");
        text.field("empty  ", "");
        let expected = "error  first\n       run 1  completed\n       \\u{7}last\nempty  ";
        assert_eq!(text.joined(), expected);
    }
}
