mod screen;
mod watch;
mod words;

use std::time::Duration;

use clap::Args;
use pgflow_runtime::inspect::{self, RunDetails};
use uuid::Uuid;

use crate::{
    age,
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    run_id,
    table::{self, table},
};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The run's id.
    #[arg(value_parser = run_id::parse)]
    id: Uuid,
    /// Follow the run until it ends: on a terminal in place, elsewhere with a line for each change,
    /// with --json with an object for each change.
    #[arg(long)]
    watch: bool,
    /// The pause between two polls; longer when a poll takes long.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "watch", value_parser = age::parse_interval)]
    interval: Duration,
}

impl Run {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        if self.watch {
            return watch::watch(&mut database, self.id, self.interval, output.json).await;
        }
        let Some(details) = inspect::run(&mut database, self.id).await? else {
            return Err(not_found(self.id));
        };
        if output.json {
            output::print_json(&details)?;
        } else {
            output::print(describe(&details))?;
        }
        Ok(exit(&details))
    }
}

fn exit(details: &RunDetails) -> Exit {
    if details.run.status == "failed" {
        Exit::RunFailed
    } else {
        Exit::Done
    }
}

pub(super) fn not_found(run_id: Uuid) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!("run {run_id} does not exist; expected the id of a run; `pgflow runs` lists them"),
    )
}

fn describe(details: &RunDetails) -> Text {
    let run = &details.run;
    let took = table::duration(run.started_at, run.ended_at);
    let mut text = Text::new();
    text.line(format!("run      {}", run.run_id));
    text.line(format!("flow     {}", run.flow_slug));
    text.line(format!("status   {}", run.status));
    text.line(format!("started  {}", table::time(run.started_at)));
    if let Some(ended_at) = run.ended_at {
        text.line(format!("ended    {}", table::time(ended_at)));
    }
    text.line(format!("took     {took}"));
    if let Some(message) = &run.error_message {
        text.field("error    ", message);
    }
    if let Some(output) = &details.output {
        text.field("output   ", &table::short(&output.to_string(), 500));
    }
    text.blank();
    if details.steps.is_empty() {
        text.line("no steps");
    } else {
        text.append(steps(details));
    }
    text
}

fn steps(details: &RunDetails) -> Text {
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
    for step in &details.steps {
        rows.add_row([
            step.step_slug.clone(),
            words::kind(step),
            step.status.clone(),
            step.tasks.queued.to_string(),
            step.tasks.started.to_string(),
            step.tasks.completed.to_string(),
            step.tasks.failed.to_string(),
            words::took(step, &details.run).unwrap_or_default(),
            table::short(&words::note(step, &details.run), 80),
        ]);
    }
    table::text(&rows)
}
