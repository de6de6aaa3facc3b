use clap::Args;
use pgflow_runtime::operations::{self, FunctionStatus};

use super::{state, target};
use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output,
    table::{self, table},
};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only this function.
    #[arg(long, value_name = "NAME", conflicts_with = "flow")]
    function: Option<String>,
    /// Only the functions of this flow: those with a live worker for it, those whose newest worker served it, and those that served one of its
    /// queues last.
    #[arg(long, value_name = "SLUG")]
    flow: Option<String>,
    /// Also the workers that have stopped.
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
        let functions = operations::list(&pool, names.as_deref(), self.all).await?;
        if output.json {
            output::print_json(&functions)?;
        } else {
            output::print(&describe(&functions))?;
        }
        Ok(Exit::Done)
    }
}

fn describe(functions: &[FunctionStatus]) -> String {
    if functions.is_empty() {
        return "no worker functions".to_owned();
    }
    let mut rows = table(&["FUNCTION", "STATE", "START", "SINCE", "REASON", "RESTORES"]);
    for FunctionStatus { function, .. } in functions {
        rows.add_row([
            function.function_name.clone(),
            state::of(function).to_owned(),
            function.start_mode.clone(),
            function.disabled_at.map(table::time).unwrap_or_default(),
            table::short(function.disabled_reason.as_deref().unwrap_or_default(), 160),
            table::short(&state::recorded(function), 60),
        ]);
    }
    let workers: Vec<_> = functions
        .iter()
        .flat_map(|function| &function.workers)
        .collect();
    if workers.is_empty() {
        return format!("{}\n\nno workers", table::text(&rows));
    }
    format!("{}\n\n{}", table::text(&rows), state::workers(workers))
}
