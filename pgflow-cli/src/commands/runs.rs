use clap::{Args, ValueEnum, value_parser};
use pgflow_runtime::inspect::{self, RunFilter, RunSummary};

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table::{self, table},
    unknown,
};

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Only runs of this status.
    #[arg(long)]
    status: Option<Status>,
    /// Only runs of this flow.
    #[arg(long, value_name = "SLUG")]
    flow: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Started,
    Completed,
    Failed,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl Runs {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let filter = RunFilter {
            status: self.status.map(|status| status.as_str().to_owned()),
            flow_slug: self.flow,
            limit: self.limit,
        };
        let mut database = database::ready(connection).await?;
        let runs = inspect::runs(&mut database, &filter).await?;
        if let (Some(flow), []) = (&filter.flow_slug, &runs[..]) {
            unknown::assert_flow(&mut database, flow).await?;
        }
        if output.json {
            output::print_json(&runs)?;
        } else {
            output::print(describe(&runs))?;
        }
        Ok(Exit::Done)
    }
}

fn describe(runs: &[RunSummary]) -> Text {
    if runs.is_empty() {
        return Text::from("no runs");
    }
    let mut rows = table(&["RUN", "FLOW", "STATUS", "STARTED", "TOOK", "ERROR"]);
    for run in runs {
        rows.add_row([
            run.run_id.to_string(),
            run.flow_slug.clone(),
            run.status.clone(),
            table::time(run.started_at),
            table::duration(run.started_at, run.ended_at),
            table::short(run.error_message.as_deref().unwrap_or_default(), 60),
        ]);
    }
    table::text(&rows)
}
