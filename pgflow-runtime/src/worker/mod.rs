//! Workers: they claim the tasks of a flow, or of one of its steps, run the handlers and record what these return.
//!
//! ```text
//! Starting -> Running -> Draining -> Stopped        work that the worker can't do: Running -> Stopped with an error
//! ```
//!
//! A worker asks the database for as many tasks as it has free slots, and, where handlers are fast, for those that its slots will have begun before
//! another claim could have brought them; it runs them side by side, and records outputs in batches. Postgres decides what is ready; the worker only executes. Handlers run at least once per task, state changes happen exactly once: an attempt
//! that is no longer the current one changes nothing.
//!
//! # Which worker
//!
//! | | |
//! |---|---|
//! | [`FlowWorker`] | all steps of a flow, which share its queue and the worker's slots |
//! | [`StepWorker`] | one step of a flow declared `with_step_queues`: each step has a queue and workers of its own, so none waits for another's slots |
//! | [`StepWorker::all`] | such a worker for each step, in one process |
//! | [`Workers`] | any of these together in one process, with one signal handler |
//!
//! Any number of processes may run any of them side by side. The wrong kind for a flow does not compile.
//!
//! Handlers are async functions: one that blocks its thread can be neither timed out nor dropped, and holds up whatever shares the
//! thread. Long computations and blocking calls belong into `tokio::task::spawn_blocking`.
//!
//! # How soon
//!
//! At once: workers of a process wake each other, a client of the process wakes them, and the database notifies the workers of all processes when
//! a run starts or a step becomes ready. Notifications are hints, and may get lost; a worker also looks by itself, at the latest after
//! [`poll_interval`](FlowWorker::poll_interval). That is also how retries and delayed steps are found when their time has come.
//!
//! # Connections
//!
//! A worker uses the pool that it is given, for three calls at a time: a claim, a batch of outputs, and a single result, such as a failure. While outputs
//! come faster than one call records a hundred of them it makes up to three of those; and rarely one that gives back tasks that it claimed and can't start.
//! Several workers of one process need that for each. Handlers that use the same pool while they run need one connection each on top of that.
//!
//! All workers of a process that share a pool, or clones of it, share one more connection, made with the pool's options and hooks but not taken out
//! of it: over it come notifications and go heartbeats, so that handlers which use up the pool do not make their worker seem dead. With
//! [`listen(false)`](FlowWorker::listen) there is none, and heartbeats take the pool's: for poolers in transaction mode.
//!
//! # Memory
//!
//! Beside what handlers allocate, a worker holds the inputs of its running tasks; up to 16 MiB of inputs of tasks that
//! wait for a slot; and, together with the others of its pool, up to 16 MiB of outputs that wait to be recorded, about four
//! times while they are. A handler whose output has no place yet keeps its slot. A flow's input that many tasks of a run
//! take is held once for each claim.
//!
//! # Heartbeats
//!
//! Every 5 s the workers of a process say that they live, all in one statement; others take a worker for dead after 6 s of silence. The answer
//! tells a deprecated worker to drain; its log says why. At the same time the process asks which of its running attempts have lost their meaning,
//! because their run has failed or their task was given to another attempt: `ctx.cancelled()` tells their handlers. Every 15 s stalled tasks of dead
//! workers are put back into their queues.
//!
//! # Outages
//!
//! A worker outlasts a database that is away: claims, results, heartbeats and the connection for notifications are tried again after 100 ms at
//! first, later after up to 5 s. A result that could not be recorded is not a failed attempt.
//!
//! # Shutdown
//!
//! A worker that is asked to stop claims nothing more, signals `ctx.cancelled()`, and waits for its handlers up to
//! [`shutdown_timeout`](FlowWorker::shutdown_timeout). What it had claimed and not started goes back into the queue, and no attempt is
//! counted. A handler that still runs at the end of the timeout is dropped; its attempt counts, and stall recovery repeats the task 30 s
//! after the attempt would have timed out. Recording the last results may take 2 s longer than the timeout.
//!
//! # Another definition
//!
//! A definition that differs from the stored one is refused by a production database. A local one replaces it: the workers that run the
//! stored one are told to stop, hear it with their next heartbeat (within 5 s), and drain; the new worker waits for that, for
//! [`drain_timeout`](FlowWorker::drain_timeout) at most. Then the stored definition is deleted with its runs.
//!
//! # Logs
//!
//! Everything is logged in the span `pgflow.worker` with the fields `flow`, `step` (of a [`StepWorker`]), `queue` and `worker_id`; each attempt in a span
//! `pgflow.task` below it, with `run_id`, `step`, `task_index` and `attempt`. Events of handlers carry both.

pub(crate) mod attempt;
mod attempts;
#[doc(hidden)]
pub mod bounds;
mod budget;
mod builder;
mod claimer;
mod completer;
mod conditions;
mod coverage;
mod error;
mod executor;
mod flow_worker;
mod group;
mod handle;
pub(crate) mod handlers;
mod hub;
pub(crate) mod options;
mod pace;
pub(crate) mod recorder;
mod requests;
mod returner;
mod serve;
mod shutdown;
mod step_worker;
mod step_workers;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod wakeup;
mod workers;

pub use crate::sql::claim::UnsupportedMessage;
pub use error::WorkerError;
pub use flow_worker::FlowWorker;
pub use handle::{WorkerHandle, WorkersHandle};
pub use options::{OptionProblem, StartMode};
pub use step_worker::StepWorker;
pub use step_workers::StepWorkers;
pub use workers::{AnyWorkers, Workers};

pub(crate) use options::WorkerOptions;
pub(crate) use serve::Shared;
pub(crate) use shutdown::Stop;
pub(crate) use wakeup::wake_flow;
