use clap::Args;
use pgflow_runtime::migrate;
use serde_json::json;

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
};

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Write the SQL instead of applying it: one script that applies what is missing, for a
    /// database that has PGMQ.
    #[arg(long)]
    print: bool,
}

impl Migrate {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        if self.print {
            print_script(output)?;
            return Ok(Exit::Done);
        }
        let report = migrate::migrate(&database::pool(connection).await?).await?;
        if output.json {
            output::print_json(&report)?;
        } else {
            output::print(report.to_string().lines().collect::<Text>())?;
        }
        Ok(if report.missing_grants.is_empty() {
            Exit::Done
        } else {
            Exit::NotReady
        })
    }
}

fn print_script(output: &Output) -> Result<(), Failure> {
    let script = migrate::script();
    if output.json {
        output::print_json(&json!({ "sql": script }))
    } else {
        output::print_for_programs(script.trim_end()).map(drop)
    }
}
