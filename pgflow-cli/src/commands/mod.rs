//! One file per command.

pub(crate) mod completions;
pub(crate) mod coverage;
pub(crate) mod delete_flow;
pub(crate) mod dev;
pub(crate) mod flow;
mod flows;
pub(crate) mod init;
pub(crate) mod migrate;
pub(crate) mod prune;
pub(crate) mod queues;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod start;
mod status;
pub(crate) mod tune;
pub(crate) mod why;
pub(crate) mod workers;

use crate::{
    arguments::{Arguments, Command},
    exit::Exit,
    failure::Failure,
};

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments {
        connection,
        output,
        command,
    } = arguments;
    match command {
        Command::Init(init) => init.run(&connection, &output).await,
        Command::Migrate(migrate) => migrate.run(&connection, &output).await,
        Command::Status => status::run(&connection, &output).await,
        Command::Dev(dev) => dev.run(&output).await,
        Command::Flows => flows::run(&connection, &output).await,
        Command::Flow(flow) => flow.run(&connection, &output).await,
        Command::Tune(tune) => tune.run(&connection, &output).await,
        Command::Start(start) => start.run(&connection, &output).await,
        Command::Runs(runs) => runs.run(&connection, &output).await,
        Command::Run(run) => run.run(&connection, &output).await,
        Command::Coverage(coverage) => coverage.run(&connection, &output).await,
        Command::Queues(queues) => queues.run(&connection, &output).await,
        Command::Workers(workers) => workers.run(&connection, &output).await,
        Command::Why(why) => why.run(&connection, &output).await,
        Command::Prune(prune) => prune.run(&connection, &output).await,
        Command::DeleteFlow(delete_flow) => delete_flow.run(&connection, &output).await,
        Command::Completions(completions) => completions.run(&output),
    }
}
