//! The worker processes: this test program again, running [`worker_process`].

use std::{
    env,
    error::Error,
    io::{Read, stdin},
    process::{Command, Stdio, exit},
    time::Duration,
};

use pgflow::prelude::*;
use pgflow::{StepWorkers, WorkerError};
use sqlx::{PgPool, postgres::PgPoolOptions};

use super::Mode;
use super::flows::one_queue::OneQueue;
use super::flows::step_queues::{Step, StepQueues};

const URL: &str = "PGFLOW_CHAOS_WORKER_URL";
const ROLE: &str = "PGFLOW_CHAOS_WORKER_ROLE";

/// The time for which handlers may continue after SIGTERM.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// The exit code of a worker that could not start because the database was away.
pub(crate) const NOT_STARTED: i32 = 3;
/// The database was away until the end of the shutdown.
pub(crate) const RESULTS_LOST: i32 = 4;
/// The line that each worker of a process logs once it is registered.
pub(crate) const STARTED: &str = "worker started";

/// The step or steps that one worker process serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Flow,
    AllSteps,
    /// The steps of the fan-out only.
    FanOut,
}

impl Role {
    /// Every step has at least two processes that serve it.
    pub(crate) fn of(mode: Mode, slot: usize) -> Self {
        match (mode, slot) {
            (Mode::Flow, _) => Self::Flow,
            (Mode::Steps, 1) => Self::FanOut,
            (Mode::Steps, _) => Self::AllSteps,
        }
    }

    /// Returns the number of workers of the process.
    pub(crate) fn workers(self) -> usize {
        match self {
            Self::Flow => 1,
            Self::AllSteps => Step::ALL.len(),
            Self::FanOut => 3,
        }
    }
}

/// The command that becomes a worker; its output is for the caller to direct.
pub(crate) fn command(role: Role, url: &str) -> Command {
    let program = env::current_exe().expect("the test program has a path");
    let mut command = Command::new(program);
    command
        .args([
            "--exact",
            "chaos::worker::worker_process",
            "--ignored",
            "--nocapture",
        ])
        .env(URL, url)
        .env(ROLE, format!("{role:?}"))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that the chaos tests start"]
async fn worker_process() {
    let (Ok(url), Ok(role)) = (env::var(URL), env::var(ROLE)) else {
        return;
    };
    std::thread::spawn(end_with_the_test);
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .connect_lazy(&url)
        .expect("a valid URL");
    let ended = match role.as_str() {
        "Flow" => {
            FlowWorker::<OneQueue>::new()
                .concurrency(8)
                .shutdown_timeout(SHUTDOWN_TIMEOUT)
                .run(&pool)
                .await
        }
        "AllSteps" => all_steps().run(&pool).await,
        "FanOut" => fan_out(&pool).run().await,
        other => panic!("there is no role {other}"),
    };
    exit(match ended {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!(error = &error as &dyn Error, "the worker ended");
            match error {
                error if is_for_want_of_a_database(&error) => NOT_STARTED,
                WorkerError::ResultsLost { .. } => RESULTS_LOST,
                _ => 1,
            }
        }
    });
}

fn all_steps() -> StepWorkers<StepQueues> {
    StepWorker::<StepQueues>::all()
        .concurrency(4)
        .shutdown_timeout(SHUTDOWN_TIMEOUT)
        .step(Step::Each, |worker| worker.concurrency(8))
}

fn fan_out(pool: &PgPool) -> Workers {
    let worker = |step| StepWorker::<StepQueues>::new(step).shutdown_timeout(SHUTDOWN_TIMEOUT);
    Workers::new(pool)
        .add(worker(Step::Gather))
        .add(worker(Step::Each).concurrency(16))
        .add(worker(Step::Collect))
}

/// A worker must survive the loss of its connections, but a database that is away when it starts is
/// for its supervisor to deal with. A refusal of ours says all by itself, and has no error of the
/// driver behind it.
fn is_for_want_of_a_database(error: &WorkerError) -> bool {
    let WorkerError::Startup(error) = error else {
        return false;
    };
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<sqlx::Error>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// However the test ends, the other end of standard input closes with it, and nobody writes to it.
fn end_with_the_test() {
    // An error says as well that nobody is there.
    let _ = stdin().read_to_end(&mut Vec::new());
    exit(2);
}
