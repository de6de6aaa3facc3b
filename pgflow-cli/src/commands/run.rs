use std::fmt::Write as _;

use clap::Args;
use pgflow_runtime::inspect::{self, RunDetails, StepDetails};
use uuid::Uuid;

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output,
    table::{self, table},
};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The run's id.
    id: Uuid,
}

impl Run {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        let Some(details) = inspect::run(&mut database, self.id).await? else {
            return Err(Failure::new(
                Exit::NotFound,
                format!(
                    "run {} does not exist; expected the id of a run; `pgflow runs` lists them",
                    self.id
                ),
            ));
        };
        if output.json {
            output::print_json(&details)?;
        } else {
            output::print(&describe(&details)?)?;
        }
        Ok(if details.run.status == "failed" {
            Exit::RunFailed
        } else {
            Exit::Done
        })
    }
}

fn describe(details: &RunDetails) -> Result<String, Failure> {
    let run = &details.run;
    let mut text = format!("run      {}\n", run.run_id);
    writeln!(text, "flow     {}", run.flow_slug)?;
    writeln!(text, "status   {}", run.status)?;
    writeln!(text, "started  {}", table::time(run.started_at))?;
    if let Some(ended_at) = run.ended_at {
        writeln!(text, "ended    {}", table::time(ended_at))?;
    }
    writeln!(
        text,
        "took     {}",
        table::duration(run.started_at, run.ended_at)
    )?;
    if let Some(message) = &run.error_message {
        writeln!(text, "error    {message}")?;
    }
    if let Some(output) = &details.output {
        writeln!(text, "output   {}", table::short(&output.to_string(), 500))?;
    }
    if details.steps.is_empty() {
        text.push_str("\nno steps");
    } else {
        write!(text, "\n{}", steps(&details.steps, run.ended_at.is_some()))?;
    }
    Ok(text)
}

fn steps(steps: &[StepDetails], run_has_ended: bool) -> String {
    let mut rows = table(&[
        "STEP",
        "TYPE",
        "STATUS",
        "QUEUED",
        "STARTED",
        "COMPLETED",
        "FAILED",
        "TOOK",
        "NOTE",
    ]);
    for step in steps {
        let took = step
            .started_at
            .map(|started_at| table::duration(started_at, step.ended_at));
        rows.add_row([
            step.step_slug.clone(),
            step.step_type.clone(),
            step.status.clone(),
            step.tasks.queued.to_string(),
            step.tasks.started.to_string(),
            step.tasks.completed.to_string(),
            step.tasks.failed.to_string(),
            took.unwrap_or_default(),
            table::short(&note(step, run_has_ended), 80),
        ]);
    }
    table::text(&rows)
}

/// What the counts don't say.
fn note(step: &StepDetails, run_has_ended: bool) -> String {
    let given_up = step.tasks.skipped + step.tasks.cancelled;
    let parts = [
        step.skip_reason
            .as_ref()
            .map(|reason| reason.replace('_', " ")),
        (given_up > 0).then(|| format!("{given_up} given up")),
        (step.status == "created" && run_has_ended).then(|| "never started".to_owned()),
        (step.status == "created" && !run_has_ended && step.remaining_deps > 0)
            .then(|| waits_for(step.remaining_deps)),
        step.error_message.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

fn waits_for(steps: i32) -> String {
    let plural = if steps == 1 { "" } else { "s" };
    format!("waits for {steps} step{plural}")
}
