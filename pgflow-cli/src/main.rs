//! The `pgflow` command.

mod age;
mod arguments;
mod commands;
mod confirm;
mod database;
mod exit;
mod failure;
mod output;
mod run_id;
mod stop;
mod table;
mod unknown;
mod words;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use arguments::Arguments;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Standard output belongs to results.
    tracing_subscriber::fmt()
        .with_env_filter(
            // A statement that takes a while is no news to whoever waits for it.
            EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| EnvFilter::new("warn,sqlx::query=error")),
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
