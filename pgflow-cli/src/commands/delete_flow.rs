use std::fmt::Write as _;

use clap::Args;
use pgflow_runtime::maintenance::{self, FlowContents, RunCounts};
use serde_json::json;

use crate::{
    arguments::{Connection, Output},
    confirm, database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    patience::Patience,
    unknown,
    words::{count, counts},
};

#[derive(Debug, Args)]
pub(crate) struct DeleteFlow {
    /// The flow; only the exact slug will do.
    slug: String,
    /// Delete without asking; required where there is no terminal.
    #[arg(long)]
    yes: bool,
}

impl DeleteFlow {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        if !self.yes {
            confirm::require_terminal()?;
        }
        let mut database = database::ready(connection).await?;
        let contents = maintenance::flow_contents(&mut database, &self.slug).await;
        let contents = unknown::flow_of(contents, &mut database, &self.slug).await?;
        if !self.yes {
            output::say(preview(&contents));
            if confirm::ask("Type its slug to delete it:")? != self.slug {
                return Err(confirm::declined());
            }
        }
        // Whoever ends the command before it is done leaves the flow marked; running it again goes
        // on.
        let deletion = maintenance::delete_flow_in_batches(&mut database, &self.slug);
        let what = format!("deleting flow {}", self.slug);
        let removed = Patience::new(output.json).during(&what, deletion).await?;
        if output.json {
            output::print_json(&json!({
                "flow_slug": contents.flow_slug,
                "removed_runs": removed,
                "queues": contents.queues,
                "functions": contents.functions,
                "workers_told_to_stop": contents.live_workers,
            }))?;
        } else {
            output::print(done(&contents, removed)?)?;
        }
        Ok(Exit::Done)
    }
}

fn preview(contents: &FlowContents) -> Text {
    let workers = match contents.live_workers {
        0 => "none live".to_owned(),
        live => format!("{live} live, will be told to stop"),
    };
    let mut text = Text::new();
    text.line(format!(
        "This deletes flow {} for good:",
        contents.flow_slug
    ));
    text.line(format!("  runs     {}", runs(contents.runs)));
    text.line(format!("  queues   {}", queues(contents)));
    text.line(format!("  workers  {workers}"));
    if !contents.functions.is_empty() {
        text.line(format!("  functions  {}", contents.functions.join(", ")));
    }
    text
}

fn runs(runs: RunCounts) -> String {
    let parts = counts([
        (runs.started, "started"),
        (runs.completed, "completed"),
        (runs.failed, "failed"),
    ]);
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts
    }
}

fn queues(contents: &FlowContents) -> String {
    if contents.queues.is_empty() {
        "none".to_owned()
    } else {
        format!("{}, with all messages", contents.queues.join(", "))
    }
}

fn done(contents: &FlowContents, removed: u64) -> Result<String, Failure> {
    let mut text = format!(
        "deleted flow {} with {}",
        contents.flow_slug,
        count(removed, "run")
    );
    if !contents.queues.is_empty() {
        let plural = if contents.queues.len() == 1 { "" } else { "s" };
        write!(text, " and queue{plural} {}", contents.queues.join(", "))?;
    }
    if !contents.functions.is_empty() {
        let plural = if contents.functions.len() == 1 {
            ""
        } else {
            "s"
        };
        write!(
            text,
            "; worker function{plural} {} went with it",
            contents.functions.join(", ")
        )?;
    }
    match contents.live_workers {
        0 => {}
        1 => text.push_str("; 1 live worker was told to stop"),
        live => write!(text, "; {live} live workers were told to stop")?,
    }
    Ok(text)
}
