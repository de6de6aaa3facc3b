//! The command line.

use clap::{Args, Parser, Subcommand};

use crate::{
    commands::{dev::Dev, migrate::Migrate, run::Run, runs::Runs, start::Start},
    exit,
};

/// Migrate, inspect and operate workflows in Postgres.
#[derive(Debug, Parser)]
#[command(name = "pgflow", version, after_help = exit::HELP, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which database.
#[derive(Debug, Args)]
pub(crate) struct Connection {
    /// The database, as postgres://user:password@host:port/database.
    #[arg(
        long,
        value_name = "URL",
        env = "DATABASE_URL",
        hide_env_values = true,
        global = true
    )]
    pub(crate) database_url: Option<String>,
}

/// How results are written.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Write results, and errors, as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring a database up to date: PGMQ, tables, functions.
    ///
    /// One transaction under one lock: it may be run by any number of processes at once, and again.
    Migrate(Migrate),
    /// Show what a database has of pgflow, and what `migrate` would do.
    ///
    /// Exits with 4 when the database is not what this command would make of it.
    Status,
    /// Start a private Postgres for development, migrated and marked local, until ctrl-c.
    Dev(Dev),
    /// Start a run of a flow, and write its id.
    Start(Start),
    /// List runs, the newest first.
    Runs(Runs),
    /// Show a run and its steps.
    ///
    /// Exits with 5 when the run has failed.
    Run(Run),
}
