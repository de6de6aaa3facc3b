use clap::Args;
use pgflow_runtime::operations::{self, Fence as Fenced, FunctionChange};

use super::{state, target::Target};
use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table,
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct Fence {
    #[command(flatten)]
    target: Target,
    /// The reason, shown on each attempt to start one of their workers.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Fence {
    pub(super) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::ready_pool(connection).await?;
        let names = self.target.resolve(&pool).await?;
        let fenced = operations::fence(&pool, &names, self.reason.as_deref()).await?;
        if output.json {
            output::print_json(&fenced)?;
        } else {
            output::print(describe(&fenced, &self.target))?;
        }
        Ok(Exit::Done)
    }
}

fn describe(fenced: &Fenced, target: &Target) -> Text {
    let mut text: Text = fenced.functions.iter().map(sentence).collect();
    text.blank();
    // Those that are lost hear nothing any more.
    let live = fenced.told_to_stop.iter();
    let live: Vec<_> = live.filter(|worker| worker.state.is_live()).collect();
    if live.is_empty() {
        text.line("no worker had to be told to stop");
    } else {
        let workers = count(live.len() as u64, "worker");
        text.line(format!("told {workers} to stop:"));
        text.append(state::workers(live));
    }
    text.blank();
    text.line(format!("next: pgflow workers drain {}", target.written()));
    text
}

fn sentence(change: &FunctionChange) -> String {
    let name = &change.after.function_name;
    let recorded = state::recorded(&change.after);
    match change.before.fenced_at {
        None => format!("{name} is fenced; the end of the fence restores: {recorded}"),
        Some(since) => format!(
            "{name} was fenced already, since {}; the end of the fence restores: {recorded}",
            table::time(since)
        ),
    }
}
