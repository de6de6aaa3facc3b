//! The possible actions on a flow, in numbers that are reduced to the possible ones when their turn
//! comes.

use serde_json::{Value, json};

use super::call::{Call, Completion, Failure, TaskKey};
use super::generator::{array, scalar};
use super::state::{Hidden, Model, Task, TaskStatus};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Among {
    Started,
    All,
    /// No task at all.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pick {
    pub(crate) number: usize,
    pub(crate) among: Among,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AttemptOf {
    Current,
    Whichever,
    Earlier,
    Later,
}

/// The output of a handler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Right,
    /// No array, where one is needed.
    Wrong,
    /// SQL NULL.
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Item {
    pub(crate) pick: Pick,
    pub(crate) attempt: AttemptOf,
    pub(crate) output: usize,
    pub(crate) shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Claim {
        worker: usize,
        max: usize,
    },
    Complete(Vec<Item>),
    CompleteOne(Item),
    Fail {
        pick: Pick,
        attempt: AttemptOf,
        retryable: bool,
        retry_delay: Option<i32>,
    },
    Postpone {
        pick: Pick,
        attempt: AttemptOf,
        delay: i32,
        too_long: bool,
    },
    Release {
        tasks: Vec<usize>,
        attempt: AttemptOf,
        by_another: bool,
    },
    Age {
        tasks: Vec<usize>,
        until_stalled: bool,
    },
    Recover,
    /// One task stalls, or all of its worker end with it, and what is recovered is claimed again.
    Stall {
        task: usize,
        times: usize,
        is_death: bool,
    },
    Show {
        seed: usize,
        even_started: bool,
    },
    StartAgain {
        run: usize,
    },
    StartRefused,
}

fn nth<T: Copy>(candidates: &[T], number: usize) -> Option<T> {
    candidates
        .get(number.checked_rem(candidates.len())?)
        .copied()
}

pub(crate) fn started(model: &Model) -> Vec<TaskKey> {
    keys(model, |task| task.status == TaskStatus::Started)
}

fn keys(model: &Model, wanted: impl Fn(&Task) -> bool) -> Vec<TaskKey> {
    let tasks = model.tasks().filter(|(_, task)| wanted(task));
    tasks.map(|(key, _)| key).collect()
}

fn is_visible(task: &Task) -> bool {
    !task.message.is_archived && task.message.hidden == Hidden::No
}

/// The queues that have something to read.
pub(crate) fn waiting_queues(model: &Model) -> Vec<usize> {
    let mut queues: Vec<usize> = model
        .tasks()
        .filter(|(_, task)| is_visible(task))
        .map(|(_, task)| task.message.queue)
        .collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}

/// Time passes until messages can be read that are hidden now.
pub(crate) fn show(model: &Model, wanted: impl Fn(TaskKey, &Task) -> bool) -> Option<Call> {
    let hidden = model.tasks().filter(|(key, task)| {
        task.is_active() && task.message.hidden != Hidden::No && wanted(*key, task)
    });
    let tasks: Vec<TaskKey> = hidden.map(|(key, _)| key).collect();
    (!tasks.is_empty()).then_some(Call::Show { tasks })
}

impl Pick {
    fn resolve(self, model: &Model) -> Option<TaskKey> {
        match self.among {
            Among::Started => nth(&started(model), self.number),
            Among::All => nth(&keys(model, |_| true), self.number),
            Among::Unknown => {
                let mut key = nth(&keys(model, |_| true), self.number / 3)?;
                let part = [&mut key.run, &mut key.step, &mut key.index];
                *part[self.number % 3] += 100;
                Some(key)
            }
        }
    }
}

impl AttemptOf {
    fn resolve(self, model: &Model, key: TaskKey) -> Option<i32> {
        let current = model.task(key).map_or(1, |task| task.attempts);
        match self {
            Self::Current => Some(current),
            Self::Whichever => None,
            Self::Earlier => Some(current - 1),
            Self::Later => Some(current + 1),
        }
    }
}

impl Item {
    fn resolve(self, model: &Model) -> Option<Completion> {
        let task = self.pick.resolve(model)?;
        Some(Completion {
            task,
            attempt: self.attempt.resolve(model, task),
            output: output(model, task, self.output, self.shape),
        })
    }
}

/// Returns the output of this task's handler.
pub(crate) fn output(model: &Model, key: TaskKey, number: usize, shape: Shape) -> Option<Value> {
    let has_step = key.step < model.flow.steps.len();
    let must_be_array = has_step && model.flow.must_return_array(key.step);
    match shape {
        Shape::Null => None,
        Shape::Right if must_be_array => Some(array(number)),
        Shape::Wrong if must_be_array => Some(json!({"no": "array"})),
        Shape::Right | Shape::Wrong => Some(scalar(number)),
    }
}

impl Action {
    /// The call that this means now; none when there is nothing to do it to.
    pub(crate) fn resolve(&self, model: &Model) -> Option<Call> {
        match self {
            Self::Claim { worker, max } => {
                let waiting = waiting_queues(model);
                // Now and then whichever queue, even an empty one.
                let queues = match worker % 10 {
                    9 => model.flow.queues(),
                    _ => waiting,
                };
                let queue = nth(&queues, worker / 10)?;
                Some(Call::Claim {
                    worker: queue * 2 + worker % 2,
                    max: *max,
                })
            }
            Self::Complete(items) => {
                let items = items.iter().filter_map(|item| item.resolve(model));
                let items: Vec<Completion> = items.collect();
                (!items.is_empty()).then_some(Call::Complete(items))
            }
            Self::CompleteOne(item) => item.resolve(model).map(Call::CompleteOne),
            Self::Fail {
                pick,
                attempt,
                retryable,
                retry_delay,
            } => {
                let task = pick.resolve(model)?;
                Some(Call::Fail(Failure {
                    task,
                    attempt: attempt.resolve(model, task),
                    message: format!("failure {}", model.call),
                    retry_delay: *retry_delay,
                    retryable: *retryable,
                }))
            }
            Self::Postpone {
                pick,
                attempt,
                delay,
                too_long,
            } => {
                let task = pick.resolve(model)?;
                Some(Call::Postpone {
                    task,
                    attempt: attempt.resolve(model, task),
                    cause: format!("refusal {}", model.call),
                    delay: *delay,
                    too_long: *too_long,
                })
            }
            Self::Release {
                tasks,
                attempt,
                by_another,
            } => release(model, tasks, *attempt, *by_another),
            Self::Age {
                tasks,
                until_stalled,
            } => age(model, tasks, *until_stalled),
            Self::Recover => Some(Call::Recover),
            // The driver does it call by call.
            Self::Stall { .. } => None,
            Self::Show { seed, even_started } => show(model, |key, task| {
                (*even_started || task.status == TaskStatus::Queued)
                    && (seed >> (key.index % 8) & 1 == 1 || *seed == 0)
            }),
            Self::StartAgain { run } => {
                nth(&(0..model.runs.len()).collect::<Vec<_>>(), *run).map(|run| Call::StartAgain {
                    run,
                    input: if run % 2 == 0 {
                        model.runs[run].input.clone()
                    } else {
                        json!([])
                    },
                })
            }
            Self::StartRefused => model.flow.has_root_map().then(|| Call::Start {
                input: json!({"no": "array"}),
            }),
        }
    }
}

/// The worker of the first task returns its own and, in vain, those of others. `attempt` is that
/// of the first.
fn release(model: &Model, tasks: &[usize], attempt: AttemptOf, by_another: bool) -> Option<Call> {
    let started = started(model);
    let tasks: Vec<TaskKey> = tasks.iter().filter_map(|&n| nth(&started, n)).collect();
    let first = *tasks.first()?;
    let worker = model.task(first)?.worker?;
    let worker = if by_another { worker ^ 1 } else { worker };
    let with_attempts = tasks.into_iter().map(|key| {
        let spoken_for = if key == first {
            attempt
        } else {
            AttemptOf::Current
        };
        let current = model.task(key).map_or(0, |task| task.attempts);
        (key, spoken_for.resolve(model, key).unwrap_or(current))
    });
    Some(Call::Release {
        worker,
        tasks: with_attempts.collect(),
    })
}

/// One of these is too short to stall a task; twice is long enough.
fn age(model: &Model, tasks: &[usize], until_stalled: bool) -> Option<Call> {
    let started = started(model);
    let mut tasks: Vec<TaskKey> = tasks.iter().filter_map(|&n| nth(&started, n)).collect();
    tasks.sort_unstable();
    tasks.dedup();
    // All by the same time: that of the first.
    let timeout = model.flow.timeout(tasks.first()?.step);
    tasks.retain(|key| model.flow.timeout(key.step) == timeout);
    let seconds = if until_stalled {
        timeout + 3600
    } else {
        timeout - 300
    };
    Some(Call::Age { tasks, seconds })
}
