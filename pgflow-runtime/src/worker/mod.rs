//! Workers: they claim the tasks of a flow, or of one of its steps, run the handlers and record
//! what these return.
//!
//! ```text
//! Starting -> Running -> Draining -> Stopped        work that the worker can't do: Running -> Stopped with an error
//! ```
//!
//! A worker asks the database for as many tasks as it has free slots, and, where handlers are fast,
//! for those that its slots will have begun before another claim could have brought them; it runs
//! them side by side, and records outputs in batches. Postgres decides what is ready; the worker
//! only executes. Handlers run at least once per task, state changes happen exactly once: an
//! attempt that is no longer the current one changes nothing.
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
//! Any number of processes may run any of them side by side. The wrong kind for a flow does not
//! compile.
//!
//! Handlers are async functions: one that blocks its thread can be neither timed out nor dropped,
//! and holds up whatever shares the thread. Long computations and blocking calls belong into
//! `tokio::task::spawn_blocking`.
//!
//! # How soon
//!
//! At once: workers of a process wake each other, a client of the process wakes them, and the
//! database notifies the workers of all processes when a run starts or a step becomes ready.
//! Notifications are hints, and may get lost; a worker also looks by itself, at the latest after
//! [`poll_interval`](FlowWorker::poll_interval). That is also how retries and delayed steps are
//! found when their time has come.
//!
//! # Connections
//!
//! A worker uses the pool that it is given, for three calls at a time: a claim, a batch of outputs,
//! and a single result, such as a failure. While outputs come faster than one call records a
//! hundred of them it makes up to three of those; and rarely one that gives back tasks that it
//! claimed and can't start, or one that tries a refused result again. Several workers of one
//! process need that for each. Handlers that use the same pool while they run need one connection
//! each on top of that.
//!
//! All workers of a process that share a pool, or clones of it, share one more connection, made
//! with the pool's options and hooks but not taken out of it: over it come notifications and go
//! heartbeats, so handlers that use up the pool do not make their worker seem dead. With
//! [`listen(false)`](FlowWorker::listen) it carries heartbeats only: for poolers in transaction
//! mode. Where a heartbeat finds that tasks may have to be recovered, another connection is made
//! for that, and closed again. Where the pool's connections have no `application_name`, these are
//! called `pgflow` and the flow.
//!
//! A connection that still answers and has turned bad is closed, and the call made on another: one
//! to a server that was demoted, in a transaction that somebody else left behind, or whose prepared
//! statements are gone.
//!
//! # A thread of its own
//!
//! Heartbeats, notifications, recovery and signals live on one thread of the process, with a
//! runtime of its own, whatever handlers do to theirs. It starts with the first worker, stays until
//! the process ends, and keeps no process from ending. It runs the hooks of the pool, which must
//! not block, and nothing else of the application's.
//!
//! It also watches handlers. One that holds its thread for more than a second is named in a
//! warning, once per attempt. An attempt that goes on after its timeout, as only a handler that
//! blocks can, is reported with each heartbeat. [`Workers::health`] and [`WorkerHandle::health`]
//! tell supervisors whether the process is live and ready.
//!
//! # Memory
//!
//! Beside what handlers allocate, a worker holds the inputs of its running tasks; up to 16 MiB of
//! inputs of tasks that wait for a slot; and, together with the others of its pool, up to 16 MiB of
//! outputs that wait to be recorded, about four times while they are. A handler whose output has no
//! place yet keeps its slot. A flow's input that many tasks of a run take is held once for each
//! claim.
//!
//! # Heartbeats
//!
//! Every 5 s a process sends the heartbeats of all its workers in one statement. After 6 s of
//! silence a worker no longer counts as live, and after 30 s (`lost_after` in
//! `pgflow.installation`) its tasks are given to others. The answer asks a deprecated worker to
//! drain; its log says why. At the same time the process asks which of its running attempts are no
//! longer current, because their run has failed or their task was given to another attempt:
//! `ctx.cancelled()` resolves in their handlers.
//!
//! # Recovery
//!
//! With each heartbeat a process asks whether tasks may have to be recovered. If so it recovers
//! those that no worker runs any more, one process at a time, until nothing is due. The tasks of a
//! worker that stopped are due at once, those of a silent worker after 30 s, whatever their
//! timeouts. An attempt of a worker that lives is due 30 s after its timeout, unless its worker
//! reports that it still runs. Right after an outage of the database nothing is recovered for 30 s:
//! workers get the time to be heard of again.
//!
//! A worker that can't reach the database goes on with its handlers. Where it was only cut off,
//! another worker may run the same task meanwhile; the first heartbeat that succeeds then names the
//! attempts that others have got, and `ctx.cancelled()` resolves in exactly those. Their results
//! are ignored.
//!
//! # Outages
//!
//! A worker outlasts a database that is away: claims, results, heartbeats and the connection for
//! notifications are tried again after 100 ms at first, later after up to 5 s. A result that could
//! not be recorded because the database was away is not a failed attempt.
//!
//! # Results that the database refuses
//!
//! Outputs are recorded in batches. A batch that the database refuses is recorded item by item, so
//! that one bad output harms no other. An output that is refused alone fails its attempt, with the
//! reason of the database: at once when the output can never be stored, and after a few tries when
//! a limit was reached, such as `statement_timeout`, or a foreign trigger or constraint refused it.
//! As long as the database can't store that failure either, the output is kept and tried again. A
//! failure whose text the database refuses is stored with that text escaped, or without it. Nor
//! does it matter what a handler's error, panic, future or output does when it is printed, written
//! or dropped.
//!
//! An input that the database can't read or print fails its attempt with the reason, and the tasks
//! behind it go on.
//!
//! A worker whose pool is closed while it works loses results: [`WorkerError::ResultsLost`] says
//! how many. Their tasks are repeated.
//!
//! Handlers go on meanwhile. When only this worker is cut off, others get its tasks, and two
//! attempts overlap until it is back; its first heartbeat then finds these, and `ctx.cancelled()`
//! tells their handlers. Where an overlap must not be, set
//! [`abandon_after`](FlowWorker::abandon_after).
//!
//! # Shutdown
//!
//! A worker that is asked to stop claims nothing more, signals `ctx.cancelled()`, and waits for its
//! handlers up to [`shutdown_timeout`](FlowWorker::shutdown_timeout). What it had claimed and not
//! started goes back into the queue, and no attempt is counted. A handler that still runs at the
//! end of the timeout is dropped, and its task goes back the same way: at once, and uncounted.
//! Recording the last results and giving tasks back may take 2 s longer than the timeout.
//!
//! A worker that runs in the foreground ([`FlowWorker::run`]) takes SIGTERM and ctrl-c. The first
//! one asks it to stop. A second one ends the process at once, with exit code 143 or 130, also
//! while a handler blocks. When `run` has returned, both do what they did before.
//!
//! # Out of service
//!
//! In a process of several workers, one whose function is fenced or disabled, or that met a message
//! which it can't take, stops alone. It looks every 2 s whether its function is in service again,
//! and registers again then. The process ends when none of its workers serves; one whose only
//! worker is disabled does not start. A worker that did not come back is the error at the end.
//!
//! # Another definition
//!
//! A definition that differs from the stored one is refused by a production database. A local one
//! replaces it: the workers that run the stored one are told to stop, hear it with their next
//! heartbeat (within 5 s), and drain; the new worker waits for that, for
//! [`drain_timeout`](FlowWorker::drain_timeout) at most. Then the stored definition is deleted with
//! its runs.
//!
//! # Logs
//!
//! Everything is logged in the span `pgflow.worker` with the fields `flow`, `step` (of a
//! [`StepWorker`]), `queue` and `worker_id`; each attempt in a span `pgflow.task` below it, with
//! `run_id`, `step`, `task_index` and `attempt`. Events of handlers carry both.

pub(crate) mod attempt;
mod attempts;
#[doc(hidden)]
pub mod bounds;
mod budget;
mod builder;
mod claimer;
pub(crate) mod clock;
mod completer;
mod conditions;
mod coverage;
mod error;
mod executor;
mod flow_worker;
mod group;
mod handle;
pub(crate) mod handlers;
mod health;
pub(crate) mod hub;
mod lost_claims;
pub(crate) mod options;
mod pace;
pub(crate) mod recorder;
mod requests;
mod returner;
mod serve;
mod shutdown;
mod signals;
mod step_worker;
mod step_workers;
mod supervise;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod wakeup;
mod workers;

pub use crate::sql::claim::UnsupportedMessage;
pub use error::WorkerError;
pub use flow_worker::FlowWorker;
pub use handle::{WorkerHandle, WorkersHandle};
pub use health::{Health, HealthCheck, WorkerHealth, WorkerState};
pub use options::{OptionProblem, StartMode};
pub use step_worker::StepWorker;
pub use step_workers::StepWorkers;
pub use workers::{AnyWorkers, Workers};

pub(crate) use options::WorkerOptions;
pub(crate) use serve::Shared;
pub(crate) use shutdown::Stop;
pub(crate) use wakeup::wake_flow;
