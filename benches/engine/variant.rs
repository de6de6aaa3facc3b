//! The same work under different conditions, to be compared.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

/// The queue mode of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// One queue and one worker.
    Flow,
    /// A queue and a worker for each step, all in one process.
    Step,
}

/// The events that the installation emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Events {
    /// None.
    Off,
    /// Of runs that ended.
    Runs,
    /// All of runs and steps.
    All,
}

/// One set of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Variant {
    pub(crate) mode: Mode,
    pub(crate) events: Events,
    /// Ended runs in the database before the work begins.
    pub(crate) history: u64,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Step => "step",
        }
    }
}

impl Events {
    /// As stored in the installation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Runs => "runs",
            Self::All => "all",
        }
    }
}

impl Variant {
    /// All combinations, so that those that differ in one thing follow each other.
    pub(crate) fn all(modes: &[Mode], events: &[Events], histories: &[u64]) -> Vec<Self> {
        let mut all = Vec::new();
        for &history in histories {
            for &events in events {
                all.extend(modes.iter().map(|&mode| Self {
                    mode,
                    events,
                    history,
                }));
            }
        }
        all
    }

    /// In what this one and `base` differ, if that is one thing, and what they share: `mode step /
    /// flow` and `events runs, history 0`.
    pub(crate) fn against(&self, base: &Self) -> Option<(String, String)> {
        let (mut differ, mut same) = (Vec::new(), Vec::new());
        for (name, value, other) in [
            ("mode", self.mode.name(), base.mode.name()),
            ("events", self.events.name(), base.events.name()),
            (
                "history",
                &*self.history.to_string(),
                &*base.history.to_string(),
            ),
        ] {
            if value == other {
                same.push(format!("{name} {value}"));
            } else {
                differ.push(format!("{name} {value} / {other}"));
            }
        }
        (differ.len() == 1).then(|| (differ.remove(0), same.join(", ")))
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mode,
            events,
            history,
        } = self;
        write!(
            f,
            "mode {}, events {}, history {history}",
            mode.name(),
            events.name()
        )
    }
}
