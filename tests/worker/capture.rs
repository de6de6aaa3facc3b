//! The log of a test's workers.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::{Dispatch, subscriber::DefaultGuard};
use tracing_subscriber::fmt::{MakeWriter, format::FmtSpan};

/// The lines that were logged since [`capture`].
pub(crate) struct Capture {
    lines: Lines,
    _second: Dispatch,
    _guard: DefaultGuard,
}

/// Captures what this thread logs, so everything of a test whose runtime has one thread.
pub(crate) fn capture() -> Capture {
    capture_at("debug", FmtSpan::NONE)
}

/// Captures every event of every crate, and the spans themselves.
pub(super) fn capture_everything() -> Capture {
    capture_at("trace", FmtSpan::FULL)
}

fn capture_at(level: &str, spans: FmtSpan) -> Capture {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_ansi(false)
        .without_time()
        .with_span_events(spans)
        .with_env_filter(level)
        .finish();
    Capture {
        lines,
        // With a single subscriber in the process, an event that another test's thread meets first
        // is switched off permanently.
        _second: Dispatch::new(tracing_subscriber::registry()),
        _guard: tracing::subscriber::set_default(subscriber),
    }
}

impl Capture {
    /// The one line that has the text.
    pub(crate) fn line(&self, text: &str) -> String {
        let mut lines = self.lines(text);
        let line = lines.pop();
        let line = line.unwrap_or_else(|| panic!("no line has {text:?} in:\n{}", self.all()));
        assert_eq!(lines, [""; 0], "{text:?} is there more than once");
        line
    }

    /// The lines that have the text.
    pub(crate) fn lines(&self, text: &str) -> Vec<String> {
        let all = self.all();
        let lines = all.lines().filter(|line| line.contains(text));
        lines.map(ToOwned::to_owned).collect()
    }

    pub(crate) fn all(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
