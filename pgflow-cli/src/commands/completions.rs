use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};
use serde_json::json;

use crate::{
    arguments::{Arguments, Output},
    exit::Exit,
    failure::Failure,
    output,
};

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Arguments::command(), "pgflow", &mut script);
        let script = String::from_utf8(script)?;
        if output.json {
            output::print_json(&json!({ "shell": self.shell.to_string(), "script": script }))?;
        } else {
            output::print_for_programs(script.trim_end())?;
        }
        Ok(Exit::Done)
    }
}
