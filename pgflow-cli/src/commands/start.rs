use std::{
    fs,
    io::{self, Read as _},
};

use anyhow::Context as _;
use clap::Args;
use pgflow_runtime::inspect;
use serde_json::{json, value::RawValue};
use uuid::Uuid;

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output, run_id, unknown,
};

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The flow.
    slug: String,
    /// The input: JSON, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    input: String,
    /// The id of the run; when a run of this flow has it already, that run is returned and nothing
    /// is started.
    #[arg(long, value_name = "UUID", value_parser = run_id::parse_new)]
    run_id: Option<Uuid>,
}

impl Start {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let input = read_input(&self.input)?;
        let mut database = database::ready(connection).await?;
        let started = inspect::start(&mut database, &self.slug, &input, self.run_id).await;
        let run_id = unknown::flow_of(started, &mut database, &self.slug).await?;
        if output.json {
            output::print_json(&json!({ "run_id": run_id }))?;
        } else {
            output::print(run_id.to_string())?;
        }
        Ok(Exit::Done)
    }
}

fn read_input(argument: &str) -> Result<Box<RawValue>, Failure> {
    let (text, place) = if argument == "-" {
        let mut text = String::new();
        io::stdin()
            .read_to_string(&mut text)
            .context("standard input can't be read as text")?;
        (text, "standard input".to_owned())
    } else if let Some(path) = argument.strip_prefix('@') {
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("the input file {path} can't be read ({error}); expected a file with JSON; check --input")))?;
        (text, path.to_owned())
    } else {
        (argument.to_owned(), "--input".to_owned())
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!(
            "{place} is not JSON ({error}); expected one JSON value; quote it for the shell, as in --input '{{\"id\": 1}}'"
        ))
    })
}
