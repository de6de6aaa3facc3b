use clap::Args;
use pgflow_runtime::operations::{self, FunctionStatus, WorkerFunction};

use super::{state, target};
use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table::{self, table},
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only this function.
    #[arg(long, value_name = "NAME", conflicts_with = "flow")]
    function: Option<String>,
    /// Only the functions of this flow: those with a live worker for it, those whose newest worker
    /// served it, and those that served one of its queues last.
    #[arg(long, value_name = "SLUG")]
    flow: Option<String>,
    /// Also the workers that are lost or have stopped.
    #[arg(long)]
    all: bool,
}

impl List {
    pub(super) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::ready_pool(connection).await?;
        let names = match (&self.function, &self.flow) {
            (Some(name), _) => {
                let names = vec![name.clone()];
                target::assert_known(&pool, &names).await?;
                Some(names)
            }
            (None, Some(flow)) => Some(target::of_flow(&pool, flow).await?.unwrap_or_default()),
            (None, None) => None,
        };
        let mut functions = operations::list(&pool, names.as_deref(), self.all).await?;
        let hidden = if self.all {
            0
        } else {
            hide_the_dead(&mut functions)
        };
        if output.json {
            output::print_json(&functions)?;
        } else {
            let mut text = describe(&functions);
            if hidden > 0 {
                text.blank();
                text.line(format!("{} not shown: --all", count(hidden, "lost worker")));
            }
            output::print(text)?;
        }
        Ok(Exit::Done)
    }
}

/// Leaves the workers that live, and those whose tasks still have to come back. Returns how many
/// it removed: a crash leaves a row for each process, until they are pruned.
fn hide_the_dead(functions: &mut [FunctionStatus]) -> u64 {
    let mut hidden = 0;
    for function in functions {
        function.workers.retain(|worker| {
            let is_shown = worker.state.is_live() || worker.started_tasks > 0;
            hidden += u64::from(!is_shown);
            is_shown
        });
    }
    hidden
}

/// Columns that would be empty are left out.
fn describe(functions: &[FunctionStatus]) -> Text {
    if functions.is_empty() {
        return Text::from("no worker functions");
    }
    let any = |holds: fn(&WorkerFunction) -> bool| {
        let mut all = functions.iter();
        all.any(|status| holds(&status.function))
    };
    let with_reason = any(|function| !function.enabled);
    let with_recorded = any(WorkerFunction::is_fenced);
    let mut header = vec!["FUNCTION", "STATE", "START"];
    if with_reason {
        header.extend(["SINCE", "REASON"]);
    }
    header.extend(with_recorded.then_some("RESTORES"));
    let mut rows = table(&header);
    for FunctionStatus { function, .. } in functions {
        let mut row = vec![
            function.function_name.clone(),
            state::of(function).to_owned(),
            function.start_mode.clone(),
        ];
        if with_reason {
            row.extend([
                function.disabled_at.map(table::ago).unwrap_or_default(),
                table::short(function.disabled_reason.as_deref().unwrap_or_default(), 160),
            ]);
        }
        row.extend(with_recorded.then(|| table::short(&state::recorded(function), 60)));
        rows.add_row(row);
    }
    let workers: Vec<_> = functions
        .iter()
        .flat_map(|function| &function.workers)
        .collect();
    let mut text = table::text(&rows);
    text.blank();
    if workers.is_empty() {
        text.line("no workers");
    } else {
        text.append(state::workers(workers));
    }
    text
}
