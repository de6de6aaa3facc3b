//! The calls that the model and the database are both asked to do, and what they answer.

use std::fmt;

use serde_json::Value;

/// A task: the number of its run, the places of its step and of itself. It need not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskKey {
    pub(crate) run: usize,
    pub(crate) step: usize,
    pub(crate) index: usize,
}

/// A completed attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completion {
    pub(crate) task: TaskKey,
    /// `None` speaks for whichever is current.
    pub(crate) attempt: Option<i32>,
    /// `None` is SQL NULL.
    pub(crate) output: Option<Value>,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) task: TaskKey,
    pub(crate) attempt: Option<i32>,
    pub(crate) message: String,
    pub(crate) retry_delay: Option<i32>,
    pub(crate) retryable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    /// Starts the next run.
    Start {
        input: Value,
    },
    /// Starts a run that exists.
    StartAgain {
        run: usize,
        input: Value,
    },
    /// Workers 2q and 2q + 1 read queue q; handlers of the latter also take the flow's input.
    Claim {
        worker: usize,
        max: usize,
    },
    /// `complete_tasks`.
    Complete(Vec<Completion>),
    /// `complete_task`.
    CompleteOne(Completion),
    Fail(Failure),
    /// `postpone_task`; with `too_long` there was an earlier postponement, two days ago.
    Postpone {
        task: TaskKey,
        attempt: Option<i32>,
        cause: String,
        delay: i32,
        too_long: bool,
    },
    /// Tasks with the attempts that the worker returns.
    Release {
        worker: usize,
        tasks: Vec<(TaskKey, i32)>,
    },
    /// `requeue_stalled_tasks`.
    Recover,
    /// A worker dies, what it ran is recovered, and it comes back.
    Lose {
        worker: usize,
    },
    /// Time passes for started tasks.
    Age {
        tasks: Vec<TaskKey>,
        seconds: i32,
    },
    /// Time passes for the messages of tasks, until they are visible.
    Show {
        tasks: Vec<TaskKey>,
    },
}

/// A row of a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClaimedRow {
    pub(crate) task: TaskKey,
    pub(crate) attempt: i32,
    pub(crate) max_attempts: i32,
    pub(crate) timeout: i32,
    pub(crate) queue: usize,
    pub(crate) message: i64,
    pub(crate) reads: i32,
    pub(crate) input: Value,
    pub(crate) flow_input: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// A run's status.
    Run(String),
    Claimed(Vec<ClaimedRow>),
    /// One outcome for each item, and whether tasks were queued.
    Items {
        outcomes: Vec<String>,
        made_ready: bool,
    },
    /// A task's status and attempts.
    Task {
        status: String,
        attempts: i32,
    },
    Count(i32),
    /// Nothing to say: time has passed.
    Done,
    /// An error of this SQLSTATE.
    Refused(String),
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} step {} [{}]", self.run, self.step, self.index)
    }
}

fn attempt(attempt: Option<i32>) -> String {
    attempt.map_or("whichever attempt".to_owned(), |n| format!("attempt {n}"))
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let output = self
            .output
            .as_ref()
            .map_or("NULL".to_owned(), ToString::to_string);
        write!(f, "{}, {}: {output}", self.task, attempt(self.attempt))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |tasks: &[TaskKey]| {
            let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
            tasks.join("; ")
        };
        match self {
            Self::Start { input } => write!(f, "start a run with {input}"),
            Self::StartAgain { run, input } => write!(f, "start run {run} again with {input}"),
            Self::Claim { worker, max } => write!(f, "worker {worker} claims up to {max}"),
            Self::Complete(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "complete a batch: {}", items.join("; "))
            }
            Self::CompleteOne(item) => write!(f, "complete {item}"),
            Self::Fail(failure) => {
                write!(f, "fail {}, {}", failure.task, attempt(failure.attempt))?;
                if let Some(delay) = failure.retry_delay {
                    write!(f, ", retry_delay {delay}")?;
                }
                f.write_str(if failure.retryable {
                    ""
                } else {
                    ", not retryable"
                })
            }
            Self::Postpone {
                task,
                attempt: of,
                delay,
                too_long,
                ..
            } => {
                let since = if *too_long { ", for too long" } else { "" };
                write!(f, "postpone {task}, {}, by {delay} s{since}", attempt(*of))
            }
            Self::Lose { worker } => write!(f, "worker {worker} dies, and is recovered from"),
            Self::Release { worker, tasks } => {
                let tasks: Vec<String> = tasks
                    .iter()
                    .map(|(task, attempt)| format!("{task}, attempt {attempt}"))
                    .collect();
                write!(f, "worker {worker} gives back {}", tasks.join("; "))
            }
            Self::Recover => f.write_str("requeue stalled tasks"),
            Self::Age { tasks, seconds } => {
                write!(f, "{seconds} s pass for started {}", list(tasks))
            }
            Self::Show { tasks } => {
                write!(f, "time passes until these are visible: {}", list(tasks))
            }
        }
    }
}
