//! The `pgflow` command.

mod age;
mod arguments;
mod commands;
mod confirm;
mod database;
mod exit;
mod failure;
mod output;
mod patience;
mod run_id;
mod stop;
mod table;
mod unknown;
mod words;

use std::process::ExitCode;

use clap::Parser;
use pgflow_runtime::printable::printable;
use tracing_subscriber::EnvFilter;

use arguments::Arguments;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };
    // Standard output belongs to results.
    tracing_subscriber::fmt()
        .with_env_filter(
            // A statement that takes a while is no news to whoever waits for it. A password file
            // that can't be read matters when the connection fails, which says so by itself.
            EnvFilter::try_from_default_env().unwrap_or_else(|_| {
                EnvFilter::new("warn,sqlx::query=error,sqlx_postgres::options::pgpass=error")
            }),
        )
        .with_writer(std::io::stderr)
        .init();
    let json = arguments.output.json;
    match commands::run(arguments).await {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.report(json);
            failure.exit().into()
        }
    }
}

/// Prints the help that was asked for, or what is wrong with the arguments.
fn refused(error: &clap::Error) -> ExitCode {
    let is_plain = |argument: std::ffi::OsString| {
        let argument = argument.to_string_lossy().into_owned();
        printable(&argument) == argument
    };
    if std::env::args_os().all(is_plain) {
        // With colours.
        error.exit();
    }
    // It quotes the arguments, of which one could drive the terminal.
    let mut text = output::Text::new();
    text.field("", error.render().to_string().trim_end());
    output::say(text);
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::Exit::Usage as u8))
}
