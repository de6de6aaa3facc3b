use std::time::Duration;

use clap::Args;
use pgflow_runtime::operations::{self, FunctionChange, RestartStatus};
use serde_json::json;
use sqlx::PgPool;

use super::{switch, target::Target, wait::Wait};
use crate::{
    age,
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct Unfence {
    #[command(flatten)]
    target: Target,
    /// Wait so long at most until each function that is enabled now has a running worker, and every
    /// step of their flows is served; 0s looks once.
    #[arg(long, value_name = "TIME", value_parser = age::parse_timeout)]
    wait: Option<Duration>,
}

impl Unfence {
    pub(super) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::ready_pool(connection).await?;
        let names = self.target.resolve(&pool).await?;
        let changes = operations::unfence(&pool, &names).await?;
        if !output.json {
            output::print(changes.iter().map(sentence).collect::<Text>())?;
        }
        let restart = match self.wait {
            None => None,
            Some(timeout) => Some(wait(&pool, &changes, timeout, output.json).await?),
        };
        if output.json {
            let is_up = restart.as_ref().map(RestartStatus::is_up);
            output::print_json(
                &json!({ "functions": changes, "is_up": is_up, "restart": restart }),
            )?;
        } else if let Some(restart) = &restart {
            output::print(describe(restart, &changes, &self.target))?;
        }
        Ok(if restart.is_none_or(|restart| restart.is_up()) {
            Exit::Done
        } else {
            Exit::NotInTime
        })
    }
}

fn sentence(change: &FunctionChange) -> String {
    if change.fence_ended() {
        return switch::fence_ended(change);
    }
    format!(
        "{} was not fenced; it stays {}",
        change.after.function_name,
        if change.after.enabled {
            "enabled"
        } else {
            "disabled"
        }
    )
}

/// Those that are enabled now; a repeated call after a timeout waits for the same.
fn enabled(changes: &[FunctionChange]) -> Vec<String> {
    changes
        .iter()
        .filter(|change| change.after.enabled)
        .map(|change| change.after.function_name.clone())
        .collect()
}

async fn wait(
    pool: &PgPool,
    changes: &[FunctionChange],
    timeout: Duration,
    is_silent: bool,
) -> Result<RestartStatus, Failure> {
    let names = enabled(changes);
    let mut wait = Wait::new(timeout, is_silent);
    loop {
        let status = operations::restart_status(pool, &names).await?;
        if status.is_up() || !wait.pause(&summary(&status)).await {
            return Ok(status);
        }
    }
}

fn summary(status: &RestartStatus) -> String {
    let mut parts = Vec::new();
    if !status.without_worker.is_empty() {
        parts.push(format!(
            "a running worker of {}",
            status.without_worker.join(", ")
        ));
    }
    if !status.uncovered.is_empty() {
        let mut queues: Vec<&str> = status
            .uncovered
            .iter()
            .map(|step| &*step.queue_name)
            .collect();
        queues.dedup();
        parts.push(format!("somebody who serves {}", queues.join(", ")));
    }
    parts.join("; ")
}

fn describe(status: &RestartStatus, changes: &[FunctionChange], target: &Target) -> Text {
    let enabled = enabled(changes).len() as u64;
    if status.is_up() {
        return Text::from(match enabled {
            0 => "no function is enabled, so there is nothing to wait for".to_owned(),
            1 => "up: it has a running worker, and every step of its flow is served".to_owned(),
            _ => format!(
                "up: all {} have a running worker, and every step of their flows is served",
                count(enabled, "function")
            ),
        });
    }
    let mut text = Text::from("not up in time:");
    for name in &status.without_worker {
        text.line(format!(
            "{name} has no running worker: look whether its process was started, and at its log"
        ));
    }
    for step in &status.uncovered {
        text.line(format!(
            "step {} of {} is not served: nobody reads queue {}",
            step.step_slug, step.flow_slug, step.queue_name
        ));
    }
    text.line(format!(
        "the fence has ended; to wait on: pgflow workers unfence {} --wait 60s",
        target.written()
    ));
    text
}
