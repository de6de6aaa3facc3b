use std::fmt::Write as _;

use clap::Args;
use pgflow_runtime::operations::{self, Fence as Fenced, FunctionChange};

use super::{state, target::Target};
use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output, table,
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct Fence {
    #[command(flatten)]
    target: Target,
    /// Why: shown to whoever tries to start one of their workers.
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
            output::print(&describe(&fenced, &self.target)?)?;
        }
        Ok(Exit::Done)
    }
}

fn describe(fenced: &Fenced, target: &Target) -> Result<String, Failure> {
    let mut text = String::new();
    for change in &fenced.functions {
        writeln!(text, "{}", sentence(change))?;
    }
    match &fenced.told_to_stop[..] {
        [] => text.push_str("\nno worker had to be told to stop\n"),
        told => writeln!(
            text,
            "\ntold {} to stop:\n{}",
            count(told.len() as u64, "worker"),
            state::workers(told)
        )?,
    }
    write!(text, "\nnext: pgflow workers drain {}", target.written())?;
    Ok(text)
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
