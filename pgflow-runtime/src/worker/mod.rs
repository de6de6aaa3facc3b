//! Workers: they claim the tasks of a flow, or of one of its steps, run the handlers and record what these return.
//!
//! ```text
//! Starting -> Running -> Draining -> Stopped        work that the worker can't do: Running -> Stopped with an error
//! ```
//!
//! A worker asks the database for as many tasks as it has free slots, runs them side by side, and records outputs in batches. Postgres
//! decides what is ready; the worker only executes. Handlers run at least once per task, state changes happen exactly once: an attempt
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
//! A step that becomes ready through a worker of this process is claimed at once by the workers of this process, and so is a run that this
//! process starts. Everything else (runs that others start, retries, what other processes make ready) is found at the next look into the
//! queue, at the latest after [`poll_interval`](FlowWorker::poll_interval).
//!
//! # Connections
//!
//! A worker uses the pool that it is given, for three calls at a time at most: a claim, a batch of outputs, and a failure or
//! heartbeat. Several workers of one process need that for each. Handlers that use the same pool while they run need one connection each on top of that.
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
//! stored one are told to stop, see it with their next heartbeat (within 5 s), and drain; the new worker waits for that, for
//! [`drain_timeout`](FlowWorker::drain_timeout) at most. Then the stored definition is deleted with its runs.
//!
//! # Logs
//!
//! Everything is logged in the span `pgflow.worker` with the fields `flow`, `step` (of a [`StepWorker`]), `queue` and `worker_id`; each attempt in a span
//! `pgflow.task` below it, with `run_id`, `step`, `task_index` and `attempt`. Events of handlers carry both.

pub(crate) mod attempt;
mod attempts;
mod builder;
mod claimer;
mod completer;
mod coverage;
mod error;
mod executor;
mod flow_worker;
mod group;
mod handle;
pub(crate) mod handlers;
mod hub;
pub(crate) mod options;
pub(crate) mod recorder;
mod requests;
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
