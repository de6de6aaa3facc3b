use clap::Args;
use pgflow_runtime::inspect::{self, RunningAttempt, StepExplanation, StepReason};
use sqlx::PgConnection;
use uuid::Uuid;

use super::run;
use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    run_id,
    table::{self, table},
    words::{count, counts},
};

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The run's id.
    #[arg(value_parser = run_id::parse)]
    run: Uuid,
    /// The slug of the step; without it, all steps of the run are explained.
    step: Option<String>,
}

impl Why {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        match (&self.step, output.json) {
            (Some(step), true) => {
                let answer = inspect::explain_step_as_json(&mut database, self.run, step).await?;
                output::print_json(&answer)?;
            }
            (Some(step), false) => {
                let explanation = inspect::explain_step(&mut database, self.run, step).await?;
                let run_error = match explanation.reason {
                    StepReason::RunEnded => error_of_run(&mut database, self.run).await?,
                    _ => None,
                };
                output::print(describe(&explanation, run_error))?;
            }
            (None, true) => {
                let answers = inspect::explain_run_as_json(&mut database, self.run).await?;
                self.assert_known(&mut database, &answers).await?;
                output::print_json(&answers)?;
            }
            (None, false) => {
                let steps = inspect::explain_run(&mut database, self.run).await?;
                self.assert_known(&mut database, &steps).await?;
                output::print(describe_run(&steps))?;
            }
        }
        Ok(Exit::Done)
    }

    /// A run may have no steps.
    async fn assert_known<T>(
        &self,
        database: &mut PgConnection,
        steps: &[T],
    ) -> Result<(), Failure> {
        if steps.is_empty() && inspect::run(database, self.run).await?.is_none() {
            return Err(run::not_found(self.run));
        }
        Ok(())
    }
}

/// Of the step that failed it.
async fn error_of_run(
    database: &mut PgConnection,
    run_id: Uuid,
) -> Result<Option<String>, Failure> {
    let details = inspect::run(database, run_id).await?;
    Ok(details.and_then(|details| details.run.error_message))
}

/// The step that failed the run, a line for each step, and how to see more.
fn describe_run(steps: &[StepExplanation]) -> Text {
    let Some(first) = steps.first() else {
        return Text::from("the run has no steps");
    };
    let mut text = Text::new();
    let failed_run = |step: &&StepExplanation| step.status == "failed" && step.runs_on.is_none();
    if let Some(culprit) = steps.iter().find(failed_run) {
        let failed = format!("Step \"{}\" failed the run", culprit.step_slug);
        match &culprit.error_message {
            Some(error) => text.line(format!("{failed}: {error}")),
            None => text.line(format!("{failed}.")),
        }
        text.blank();
    }
    text.line(format!("run   {} ({})", first.run_id, first.run_status));
    text.line(format!("flow  {}", first.flow_slug));
    text.blank();
    let mut rows = table(&["STEP", "STATUS", "WHY"]);
    for step in steps {
        rows.add_row([
            step.step_slug.clone(),
            step.status.clone(),
            table::times_in(&step.message),
        ]);
    }
    text.append(table::text(&rows));
    text.blank();
    text.line(format!(
        "what that rests on: pgflow why {} STEP",
        first.run_id
    ));
    text
}

/// The reason, and then what it rests on; `run_error` is why the run failed, of another step than
/// the one that failed it.
fn describe(explanation: &StepExplanation, run_error: Option<String>) -> Text {
    let mut text = Text::from(table::times_in(&explanation.message));
    text.blank();
    text.line(format!(
        "run          {} ({})",
        explanation.run_id, explanation.run_status
    ));
    text.line(format!("flow         {}", explanation.flow_slug));
    text.line(format!(
        "step         {} ({})",
        explanation.step_slug, explanation.status
    ));
    for (label, value) in facts(explanation, run_error) {
        text.field(&format!("{label:<13}"), &value);
    }
    if !explanation.running.is_empty() {
        text.blank();
        text.append(running(&explanation.running));
    }
    text
}

/// Those that are known.
fn facts(explanation: &StepExplanation, run_error: Option<String>) -> Vec<(&'static str, String)> {
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
        ("run's error", run_error),
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

fn running(attempts: &[RunningAttempt]) -> Text {
    let with_build = attempts.iter().any(|attempt| attempt.build.is_some());
    let mut header = vec!["TASK", "ATTEMPT", "WORKER", "SINCE", "FOR", "OVERDUE AT"];
    header.extend(with_build.then_some("BUILD"));
    let mut rows = table(&header);
    for attempt in attempts {
        let mut row = vec![
            attempt.task_index.to_string(),
            attempt.attempt.to_string(),
            attempt
                .worker_id
                .map_or_else(|| "unknown".to_owned(), |id| id.to_string()),
            table::time(attempt.started_at),
            table::duration(attempt.started_at, None),
            table::time(attempt.overdue_at),
        ];
        let build = attempt.build.as_deref().unwrap_or_default();
        row.extend(with_build.then(|| table::short(build, 40)));
        rows.add_row(row);
    }
    table::text(&rows)
}
