//! Workers: they claim the tasks of a flow, or of one of its steps, run the handlers and record the
//! results.
//!
//! ```text
//! Starting -> Running -> Draining -> Stopped
//!             Running -> Stopped with an error, for unsupported messages
//! ```
//!
//! A worker asks the database for as many tasks as it has free slots. When handlers are fast it
//! claims ahead: it also asks for the tasks that its slots can start before the next claim returns.
//! It runs them concurrently, and records outputs in batches. Postgres decides which steps are
//! ready; the worker only executes. Handlers run at least once per task, and state changes happen
//! exactly once: an attempt that is no longer the current one changes nothing.
//!
//! # Choice of a worker
//!
//! | | |
//! |---|---|
//! | [`FlowWorker`] | all steps of a flow, which share its queue and the worker's slots |
//! | [`StepWorker`] | one step of a flow declared `with_step_queues`: each step has its own queue and workers, so none waits for another's slots |
//! | [`StepWorker::all`] | such a worker for each step, in one process |
//! | [`Workers`] | any of these together in one process, with one signal handler |
//!
//! Any number of processes may run any of them concurrently. The wrong kind for a flow does not
//! compile.
//!
//! Handlers are async functions. A handler that blocks its thread can be neither timed out nor
//! dropped, and delays everything else on the thread. Run long computations and blocking calls in
//! `tokio::task::spawn_blocking`.
//!
//! # Latency
//!
//! New tasks start at once: workers of a process wake each other, a client of the process wakes
//! them, and the database notifies the workers of all processes when a run starts or a step becomes
//! ready. Notifications are hints, and may get lost; a worker also polls, at the latest after
//! [`poll_interval`](FlowWorker::poll_interval). Polling also finds retries and delayed steps when
//! they are due.
//!
//! # Connections
//!
//! A worker makes up to three calls at a time on its pool: a claim, a batch of outputs, and a
//! single result, such as a failure. While outputs arrive faster than one call records a hundred of
//! them, it records up to three batches at a time. In rare cases it makes one more call, to return
//! claimed tasks that it can't start, or to repeat a refused result. Each of several workers of one
//! process needs as many. Handlers that use the same pool need one more connection each while they
//! run.
//!
//! All workers of a process that share a pool, or clones of it, share one more connection. It has
//! the pool's options and hooks but is not taken from it, and carries notifications and heartbeats:
//! handlers that exhaust the pool do not make their worker appear dead. With
//! [`listen(false)`](FlowWorker::listen) it carries only heartbeats: for poolers in transaction
//! mode. If a heartbeat finds that tasks may need recovery, another connection is opened for it,
//! and closed again. If the pool's connections have no `application_name`, these are named after
//! `pgflow` and the flow.
//!
//! A connection that still answers but is unusable is closed, and the call is repeated on another
//! one: the connection of a demoted server, one in a transaction that another caller left open, or
//! one whose prepared statements are missing.
//!
//! # A separate thread
//!
//! Heartbeats, notifications, recovery and signals run on one thread of the process with its own
//! runtime, independent of the threads of handlers. It starts with the first worker, runs until the
//! process ends, and keeps no process from ending. It runs the hooks of the pool, which must not
//! block, and no other code of the application.
//!
//! It also watches handlers. It names a handler that holds its thread for more than a second in a
//! warning, once per attempt. With each heartbeat it reports attempts that run past their timeout,
//! which only blocking handlers can do. [`Workers::health`] and [`WorkerHandle::health`] report to
//! supervisors whether the process is live and ready.
//!
//! # Memory
//!
//! In addition to the allocations of handlers, a worker holds
//!
//! - the inputs of its running tasks;
//! - up to 16 MiB of inputs of tasks that wait for a slot;
//! - together with the others of its pool, up to 16 MiB of outputs that wait to be recorded, about
//!   four times while they are recorded. A handler whose output does not fit yet keeps its slot.
//!
//! A flow's input that many tasks of a run take is held once for each claim.
//!
//! # Heartbeats
//!
//! Every 5 s a process sends the heartbeats of all its workers in one statement. Without a
//! heartbeat for 6 s a worker no longer counts as live, and after 30 s (`lost_after` in
//! `pgflow.installation`) its tasks go to others. The answer asks a deprecated worker to drain; its
//! log shows the reason. In the same interval the process asks which of its running attempts are no
//! longer current, because their run has failed or their task has another attempt:
//! `ctx.cancelled()` resolves in their handlers.
//!
//! # Recovery
//!
//! With each heartbeat a process asks whether tasks may need recovery. If so, it recovers the tasks
//! that no worker runs any more, one process at a time, until none is due. The tasks of a stopped
//! worker are due at once, those of a silent worker after 30 s, whatever their timeouts. An attempt
//! of a live worker is due 30 s after its timeout, unless its worker reports that it still runs.
//! After a database outage nothing is recovered for 30 s, so that workers have time to send
//! heartbeats again.
//!
//! A worker that can't reach the database continues its handlers. If only this worker was
//! disconnected, another one may run the same task meanwhile. The first heartbeat that succeeds
//! then names the attempts that others have taken, and `ctx.cancelled()` resolves in exactly those.
//! Their results are ignored.
//!
//! # Outages
//!
//! Workers survive database outages: claims, results, heartbeats and the connection for
//! notifications are retried, first after 100 ms, later after up to 5 s. A result that could not be
//! recorded because of an outage is not a failed attempt.
//!
//! Handlers continue meanwhile. When only this worker is disconnected, others get its tasks, and
//! two attempts overlap until it reconnects; its first heartbeat then finds these, and
//! `ctx.cancelled()` resolves in their handlers. To prevent an overlap, set
//! [`abandon_after`](FlowWorker::abandon_after).
//!
//! # Results that the database refuses
//!
//! Outputs are recorded in batches. If the database refuses a batch, the worker records it item by
//! item, so that one bad output harms no other. An output that is refused alone fails its attempt,
//! with the reason of the database. It fails at once when the output can never be stored. It fails
//! after a few tries when a limit was reached, such as `statement_timeout`, or when a foreign
//! trigger or constraint refused it. While the database can't store that failure either, the output
//! is kept and retried. A failure whose text the database refuses is stored with that text escaped,
//! or without it. A handler's error, panic, future or output that misbehaves when it is printed,
//! written or dropped fails only its attempt.
//!
//! An input that the database can't read or print fails its attempt with the reason, and the tasks
//! behind it continue.
//!
//! A worker whose pool is closed while it works loses results: [`WorkerError::ResultsLost`]
//! contains their number. Their tasks are repeated.
//!
//! # Shutdown
//!
//! A worker that is asked to stop claims no more tasks, signals `ctx.cancelled()`, and waits for
//! its handlers up to [`shutdown_timeout`](FlowWorker::shutdown_timeout). Tasks that it had claimed
//! and not started return to the queue, and no attempt is counted. At the end of the timeout it
//! drops the running handlers, and their tasks return in the same way: at once, and uncounted.
//! Recording the last results and returning tasks may take 2 s longer than the timeout.
//!
//! A worker in the foreground ([`FlowWorker::run`]) handles SIGTERM and ctrl-c. The first signal
//! asks it to stop. A second one ends the process at once, with exit code 143 or 130, even while a
//! handler blocks. After `run` has returned, both have their earlier effect again.
//!
//! # Out of service
//!
//! In a process of several workers, a worker stops alone when its function is fenced or disabled,
//! or when it reads an unsupported message. Every 2 s it checks whether its function is in service
//! again, and then registers again. The process ends when none of its workers serves. A process
//! whose only worker is disabled does not start. A worker that did not return is the error at the
//! end.
//!
//! # Another definition
//!
//! A production database refuses a definition that differs from the stored one. A local database
//! replaces it: the workers of the stored one are asked to stop, receive the request with their
//! next heartbeat (within 5 s), and drain. The new worker waits for them, at most for
//! [`drain_timeout`](FlowWorker::drain_timeout). Then the stored definition is deleted with its
//! runs.
//!
//! # Logs
//!
//! All events are logged in the span `pgflow.worker` with the fields `flow`, `step` (of a
//! [`StepWorker`]), `queue` and `worker_id`. Each attempt has a span `pgflow.task` below it, with
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
