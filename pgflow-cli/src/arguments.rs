//! The command line.

use clap::{Args, Parser, Subcommand};

use crate::{
    commands::{
        completions::Completions, coverage::Coverage, delete_flow::DeleteFlow, dev::Dev,
        flow::Flow, init::Init, migrate::Migrate, prune::Prune, queues::Queues, run::Run,
        runs::Runs, start::Start, tune::Tune, why::Why, workers::Workers,
    },
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

/// The choice of the database.
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

/// The format of the results.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Write results, and errors, as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prepare a database: migrate it, and with --local mark it as a developer's own.
    ///
    /// A production database, which every database is until it is marked, refuses a worker whose
    /// flow differs from the stored one. A local one replaces the stored flow, runs included, once
    /// the workers of the old code have stopped.
    Init(Init),
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
    /// List the flows that are defined, with their options and how many workers serve them.
    Flows,
    /// Show how a flow is defined: its steps, what they wait for, their options and who serves
    /// them.
    Flow(Flow),
    /// Set options of a flow, or of one of its steps, for attempts that start from now on.
    ///
    /// Options in code are those of a flow's first start; from then on the database has them. A
    /// local database takes those of the code at each start.
    Tune(Tune),
    /// Start a run of a flow, and write its id.
    Start(Start),
    /// List runs, the newest first.
    Runs(Runs),
    /// Show a run and its steps, and why those that do not run do not.
    ///
    /// Exits with 5 when the run has failed. With --watch it follows the run until it ends, and
    /// ctrl-c before that exits with 130.
    Run(Run),
    /// Show who serves each queue of each flow, and what waits there.
    ///
    /// Exits with 6 when work waits in one that no live worker serves: it waits, and nothing fails.
    Coverage(Coverage),
    /// Show how much is in each queue of each flow.
    ///
    /// VISIBLE: can be read now, the oldest since OLDEST. HIDDEN: its task runs, or is delayed.
    /// RUNNING: tasks under way. With --inspect, the messages that no worker can take.
    Queues(Queues),
    /// List worker functions and their workers, and take them out of service and back.
    #[command(subcommand)]
    Workers(Workers),
    /// Say why the steps of a run are not running; of one step, also what that rests on.
    Why(Why),
    /// Remove the runs that ended long ago, with their tasks and messages.
    ///
    /// Asks before, on a terminal; elsewhere it needs --yes. Batch after batch, each a transaction
    /// of its own, so that nothing is locked for long; ctrl-c ends it after the current one.
    /// Workers that stopped that long ago go too. Runs that have not ended stay.
    Prune(Prune),
    /// Delete a flow permanently: its runs, whatever their status, its definition and its queues.
    ///
    /// Shows what goes and asks for the slug, on a terminal; elsewhere it needs --yes. Running
    /// workers of the flow are asked to stop.
    DeleteFlow(DeleteFlow),
    /// Write the completions of a shell: for bash, in ~/.bashrc: source <(pgflow completions bash).
    Completions(Completions),
}
