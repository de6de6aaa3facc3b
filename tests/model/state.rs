//! The state of the model: runs, their steps and tasks, and the place of each task's message. No
//! counter is kept: see `counters`.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use super::call::TaskKey;
use super::flow::Flow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunStatus {
    Started,
    Completed,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepStatus {
    Created,
    Started,
    Completed,
    Failed,
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskStatus {
    Queued,
    Started,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

/// An error message; the design fixes what some must tell, not their words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Text {
    Is(String),
    /// Names both steps and the type of what was returned. Any of several maps will do.
    TypeViolation {
        source: String,
        maps: Vec<String>,
        json_type: &'static str,
    },
    Stalled,
    /// The worker died while nothing else ran in it.
    Culprit {
        step: String,
        index: usize,
    },
    /// It was postponed so often.
    GivenUp(i32),
    /// Every element failed, at last this one, with this error.
    AllElements {
        count: usize,
        last: usize,
        error: Box<Self>,
    },
}

impl Text {
    pub(crate) fn allows(&self, found: &str) -> bool {
        let names = |slug: &String| found.contains(&format!("\"{slug}\""));
        match self {
            Self::Is(text) => text == found,
            Self::TypeViolation {
                source,
                maps,
                json_type,
            } => names(source) && maps.iter().any(names) && found.ends_with(json_type),
            Self::Stalled => found.starts_with("stalled") && !found.contains("ran alone"),
            Self::Culprit { step, index } => {
                found.starts_with("stalled")
                    && found.contains("ran alone")
                    && names(step)
                    && found.contains(&format!("task {index},"))
            }
            Self::GivenUp(times) => {
                found.starts_with(&format!("postponed {times} times since "))
                    && found.contains("give_up_after")
            }
            Self::AllElements { count, last, error } => {
                let start = match count {
                    1 => "its only element failed: ".to_owned(),
                    _ => format!("all {count} elements failed, at last element {last}: "),
                };
                found
                    .strip_prefix(&start)
                    .is_some_and(|rest| error.allows(rest))
            }
        }
    }
}

/// The time at which a message can be read again, counted from the call that decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// It can be read now.
    No,
    Seconds(i64),
    /// Some moment of these, chosen at random.
    Between(i64, i64),
    /// Until its task counts as stalled.
    UntilRecovery,
    /// Its task counts as stalled already: a moment, so that nobody reads it in a loop.
    Briefly,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) queue: usize,
    /// Chosen by the queue; known after the call that sent it.
    pub(crate) id: Option<i64>,
    pub(crate) is_archived: bool,
    pub(crate) reads: i32,
    pub(crate) hidden: Hidden,
    /// The number of the call that decided `hidden`.
    pub(crate) decided_in: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) status: TaskStatus,
    pub(crate) attempts: i32,
    /// Those that were postponed or returned.
    pub(crate) uncounted: i32,
    /// Since the last attempt that counts.
    pub(crate) postponed: i32,
    /// The first of these postponements was longer ago than a task may be postponed.
    pub(crate) is_postponed_too_long: bool,
    /// `true` if its attempts ended with its workers, so that one more follows, beside which
    /// nothing runs.
    pub(crate) runs_alone: bool,
    pub(crate) requeues: i32,
    pub(crate) is_permanently_stalled: bool,
    /// A map's element.
    pub(crate) element: Option<Value>,
    pub(crate) output: Option<Value>,
    pub(crate) error: Option<Text>,
    /// The worker that runs it.
    pub(crate) worker: Option<usize>,
    /// For how long the test pretends that it has been running.
    pub(crate) age: i64,
    pub(crate) message: Message,
}

impl Task {
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.status, TaskStatus::Queued | TaskStatus::Started)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepState {
    pub(crate) status: StepStatus,
    pub(crate) output: Option<Value>,
    pub(crate) error: Option<Text>,
    pub(crate) skip_reason: Option<&'static str>,
    pub(crate) tasks: Vec<Task>,
}

impl StepState {
    /// Returns whether dependents need not wait for it any longer.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.status, StepStatus::Completed | StepStatus::Skipped)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) id: Uuid,
    pub(crate) status: RunStatus,
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
    pub(crate) error: Option<Text>,
    pub(crate) steps: Vec<StepState>,
}

/// An event, with what its payload tells at that moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) run: usize,
    pub(crate) step: Option<usize>,
    pub(crate) status: String,
    pub(crate) input: Option<Value>,
    pub(crate) output: Option<Value>,
    pub(crate) error: Option<Text>,
    pub(crate) skip_reason: Option<&'static str>,
}

/// The model of one flow and all its runs.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) flow: Flow,
    pub(crate) runs: Vec<Run>,
    /// The attempts that workers make room for, or run alone, by worker.
    pub(crate) alone: BTreeMap<usize, (TaskKey, i32)>,
    /// The events of the current call.
    pub(crate) events: Vec<Event>,
    /// The number of the current call.
    pub(crate) call: usize,
}

macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal),+) => {
        impl $type {
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

named!(RunStatus: Started = "started", Completed = "completed", Failed = "failed");
named!(StepStatus: Created = "created", Started = "started", Completed = "completed", Failed = "failed", Skipped = "skipped");
named!(TaskStatus: Queued = "queued", Started = "started", Completed = "completed", Failed = "failed", Skipped = "skipped",
    Cancelled = "cancelled");
