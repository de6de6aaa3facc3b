use std::{collections::BTreeSet, time::Duration};

use clap::Args;
use pgflow_runtime::operations::{
    self, BusyWorker, DrainStatus, FunctionStatus, WorkerState, WorkerStatus,
};
use serde_json::json;
use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    state,
    target::{Target, quoted},
    wait::Wait,
};
use crate::{
    age,
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table,
    words::{count, counts},
};

/// The interval at which tasks of dead workers are recovered.
const RECOVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct Drain {
    #[command(flatten)]
    target: Target,
    /// The longest wait; 0s checks once.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = age::parse_timeout)]
    timeout: Duration,
    /// The reason for the stop request; shown with the workers.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The result of the drain.
struct Drained {
    told: Vec<Uuid>,
    status: DrainStatus,
    requeued: u64,
}

impl Drain {
    pub(super) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::ready_pool(connection).await?;
        let names = self.target.resolve(&pool).await?;
        let reason = self.reason.as_deref().unwrap_or("drained");
        let told = operations::deprecate(&pool, &names, Some(reason)).await?;
        if !output.json {
            let functions = operations::list(&pool, Some(&names), true).await?;
            if let live @ 1.. = live_of(&told, &functions) {
                output::say(format!("told {} to stop", count(live, "worker")));
            }
        }
        let drained = self.wait(&pool, &names, told, output.json).await?;
        if output.json {
            output::print_json(&json!({
                "is_drained": drained.status.is_drained(),
                "told_to_stop": drained.told,
                "waiting_for": drained.status.waiting_for,
                "enabled_functions": drained.status.enabled_functions,
                "requeued_tasks": drained.requeued,
            }))?;
        } else {
            output::print(self.describe(&drained))?;
        }
        Ok(if drained.status.is_drained() {
            Exit::Done
        } else {
            Exit::NotInTime
        })
    }

    async fn wait(
        &self,
        pool: &PgPool,
        names: &[String],
        told: Vec<Uuid>,
        is_silent: bool,
    ) -> Result<Drained, Failure> {
        let mut wait = Wait::new(self.timeout, is_silent);
        let mut requeued = 0;
        let mut recovered_at: Option<Instant> = None;
        let mut is_warned = false;
        loop {
            // When everything is fenced, no worker recovers the tasks of the dead.
            if recovered_at.is_none_or(|at| at.elapsed() >= RECOVERY) {
                requeued += operations::requeue_stalled_tasks(pool).await?;
                recovered_at = Some(Instant::now());
            }
            let status = operations::drain_status(pool, names).await?;
            if !is_silent && !is_warned {
                warn_of_enabled(&status.enabled_functions);
                is_warned = true;
            }
            if status.is_drained() || !wait.pause(&summary(&status.waiting_for)).await {
                return Ok(Drained {
                    told,
                    status,
                    requeued,
                });
            }
        }
    }

    fn describe(&self, drained: &Drained) -> Text {
        let mut text = Text::new();
        if drained.requeued > 0 {
            let tasks = count(drained.requeued, "task");
            text.line(format!(
                "{tasks} of dead workers went back into their queues"
            ));
        }
        let busy = &drained.status.waiting_for;
        if busy.is_empty() {
            text.line("drained: no worker lives, and none of their tasks is started");
            return text;
        }
        let time = if self.timeout.is_zero() {
            "no time".to_owned()
        } else {
            age::words(self.timeout)
        };
        text.line(format!("not drained in {time}: {}", summary(busy)));
        text.blank();
        text.append(state::workers(busy.iter().map(|busy| &busy.worker)));
        text.blank();
        for advice in advice(busy) {
            text.line(advice);
        }
        text.line(format!(
            "to wait on: pgflow workers drain {} --timeout 10m",
            self.target.written()
        ));
        text
    }
}

/// Returns the number of live ones among these: lost workers receive no requests.
fn live_of(told: &[Uuid], functions: &[FunctionStatus]) -> u64 {
    let workers = functions.iter().flat_map(|function| &function.workers);
    workers
        .filter(|worker| worker.state.is_live() && told.contains(&worker.worker_id))
        .count() as u64
}

fn warn_of_enabled(functions: &[String]) {
    if functions.is_empty() {
        return;
    }
    let names: Vec<String> = functions.iter().map(|name| quoted(name)).collect();
    let (are, their) = if names.len() == 1 {
        ("is", "its")
    } else {
        ("are", "their")
    };
    output::say(format!(
        "warning: {} {are} enabled, so whoever supervises {their} workers may start them again; to keep them out: pgflow workers fence {}",
        functions.join(", "),
        names.join(" ")
    ));
}

/// `2 workers: 1 draining, 1 lost; 3 started tasks`.
fn summary(busy: &[BusyWorker]) -> String {
    let of = |wanted: WorkerState| {
        let workers = busy.iter().filter(|busy| busy.worker.state == wanted);
        i64::try_from(workers.count()).unwrap_or(i64::MAX)
    };
    let states = [
        WorkerState::Running,
        WorkerState::Draining,
        WorkerState::Lost,
        WorkerState::Stopped,
    ]
    .map(|state| (of(state), state.as_str()));
    let tasks: i64 = busy.iter().map(|busy| busy.worker.started_tasks).sum();
    format!(
        "{}: {}; {}",
        count(busy.len() as u64, "worker"),
        counts(states),
        count(tasks.unsigned_abs(), "started task")
    )
}

/// Returns the advice for each way in which a worker delays the drain, each once.
fn advice(busy: &[BusyWorker]) -> BTreeSet<String> {
    let mut advice = BTreeSet::new();
    for busy in busy {
        let WorkerStatus {
            function_name,
            state,
            started_tasks,
            ..
        } = &busy.worker;
        advice.insert(match (state, started_tasks) {
            (WorkerState::Running, _) => format!(
                "{function_name}: a worker has started since the others were told to stop; keep them out with `pgflow workers fence {}`",
                quoted(function_name)
            ),
            (WorkerState::Draining, 0) => format!(
                "{function_name}: a worker was told to stop, has nothing to do, and still sends heartbeats; it hears of it within 5 seconds, \
                 else look at its log, or end its process"
            ),
            (WorkerState::Draining, _) => format!(
                "{function_name}: a worker finishes what it runs; it gives up at its shutdown timeout, or at the timeout of its tasks{}",
                overdue(busy, ", at the latest at ")
            ),
            (WorkerState::Stopped, _) => format!(
                "{function_name}: a worker stopped and did not give its tasks back; recovery takes them within seconds"
            ),
            _ => format!(
                "{function_name}: a worker died, or can't reach the database; recovery takes its tasks{}",
                overdue(busy, ", from ")
            ),
        });
    }
    advice
}

fn overdue(busy: &BusyWorker, before: &str) -> String {
    busy.tasks_overdue_at
        .map_or_else(String::new, |at| format!("{before}{}", table::time(at)))
}
