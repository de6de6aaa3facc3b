//! A command that is under way.

use std::{
    io::{BufRead, BufReader, Read as _},
    process::{Child, ChildStderr, ChildStdout, Stdio},
};

use crate::support::{Database, command};

pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    pub(crate) fn start(database: &Database, arguments: &[&str]) -> Self {
        let mut child = command(arguments)
            .env("DATABASE_URL", &database.url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdout: BufReader::new(child.stdout.take().unwrap()),
            stderr: BufReader::new(child.stderr.take().unwrap()),
            child,
        }
    }

    /// Reads standard output up to a line that contains this.
    pub(crate) fn sees(&mut self, text: &str) -> String {
        line_with(&mut self.stdout, text)
    }

    /// Reads standard error up to a line that contains this.
    pub(crate) fn sees_error(&mut self, text: &str) -> String {
        line_with(&mut self.stderr, text)
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([name, &pid])
            .status();
        assert!(sent.unwrap().success());
    }

    /// The exit code, and what has not been read of standard output and standard error.
    pub(crate) fn end(mut self) -> (i32, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code().unwrap(), stdout, stderr)
    }
}

#[track_caller]
fn line_with(reader: &mut impl BufRead, text: &str) -> String {
    let mut before = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "ended without {text:?}: {before}");
        if line.contains(text) {
            return line;
        }
        before.push_str(&line);
    }
}
