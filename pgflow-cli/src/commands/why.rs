use std::fmt::Write as _;

use clap::Args;
use pgflow_runtime::inspect::{self, RunningAttempt, StepExplanation};
use uuid::Uuid;

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output,
    table::{self, table},
    words::{count, counts},
};

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The run's id.
    run: Uuid,
    /// The slug of the step.
    step: String,
}

impl Why {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        if output.json {
            let answer = inspect::explain_step_as_json(&mut database, self.run, &self.step).await?;
            output::print_json(&answer)?;
        } else {
            let explanation = inspect::explain_step(&mut database, self.run, &self.step).await?;
            output::print(&describe(&explanation)?)?;
        }
        Ok(Exit::Done)
    }
}

/// The reason, and then what it rests on.
fn describe(explanation: &StepExplanation) -> Result<String, Failure> {
    let mut text = format!("{}\n\n", table::times_in(&explanation.message));
    writeln!(
        text,
        "run          {} ({})",
        explanation.run_id, explanation.run_status
    )?;
    writeln!(text, "flow         {}", explanation.flow_slug)?;
    write!(
        text,
        "step         {} ({})",
        explanation.step_slug, explanation.status
    )?;
    for (label, value) in facts(explanation) {
        write!(text, "\n{label:<13}{value}")?;
    }
    if !explanation.running.is_empty() {
        write!(text, "\n\n{}", running(&explanation.running))?;
    }
    Ok(text)
}

/// Those that are known.
fn facts(explanation: &StepExplanation) -> Vec<(&'static str, String)> {
    let waiting_for: Vec<String> = explanation
        .waiting_for
        .iter()
        .map(|dependency| format!("{} ({})", dependency.step_slug, dependency.status))
        .collect();
    let tasks = explanation.tasks;
    let tasks = counts([
        (tasks.queued, "queued"),
        (tasks.started, "started"),
        (tasks.completed, "completed"),
        (tasks.failed, "failed"),
        (tasks.skipped, "skipped"),
        (tasks.cancelled, "cancelled"),
    ]);
    let live_workers = count(explanation.live_workers.unsigned_abs(), "live worker");
    let facts = [
        ("error", explanation.error_message.clone()),
        ("waiting for", Some(waiting_for.join(", "))),
        ("tasks", Some(tasks)),
        ("visible at", explanation.visible_at.map(table::time)),
        (
            "queue",
            Some(format!("{}, {live_workers}", explanation.queue_name)),
        ),
        ("disabled", explanation.disabled_reason.clone()),
    ];
    facts
        .into_iter()
        .filter_map(|(label, value)| Some((label, value?)))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

fn running(attempts: &[RunningAttempt]) -> String {
    let mut rows = table(&["TASK", "ATTEMPT", "WORKER", "SINCE", "FOR", "OVERDUE AT"]);
    for attempt in attempts {
        rows.add_row([
            attempt.task_index.to_string(),
            attempt.attempt.to_string(),
            attempt
                .worker_id
                .map_or_else(|| "unknown".to_owned(), |id| id.to_string()),
            table::time(attempt.started_at),
            table::duration(attempt.started_at, None),
            table::time(attempt.overdue_at),
        ]);
    }
    table::text(&rows)
}
