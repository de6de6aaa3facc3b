//! The same no-op work by pgflow and by other job libraries over Postgres: see `README.md` beside
//! this.

mod conditions;
mod contestants;
mod floor;
mod flows;
#[path = "../../support/load.rs"]
mod load;
mod measure;
mod options;
#[path = "../../support/queue.rs"]
mod queue;
mod report;
mod results;
mod server;
mod spread;
mod typescript;
mod work;

use std::{error::Error, process::ExitCode};

use clap::Parser;

use conditions::Conditions;
use contestants::{ENTRIES, Entry};
use options::Options;
use results::Results;
use server::Server;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<()> {
    let chosen: Vec<&'static Entry> = ENTRIES
        .iter()
        .filter(|entry| options.wants(entry.name))
        .collect();
    if chosen.is_empty() {
        let names = ENTRIES.map(|entry| entry.name).join("\n  ");
        return Err(format!("no contestant is called so; there are\n  {names}").into());
    }

    let server = Server::start(&options).await?;
    let conditions = Conditions::of(&server, &options).await?;
    println!("{conditions}");
    let results = compare(&server, &options, &chosen).await?;
    print!("{}", report::report(&results));
    if let Some(path) = &options.json {
        let file = std::fs::File::create(path)
            .map_err(|error| format!("{} can't be written: {error}", path.display()))?;
        serde_json::to_writer_pretty(file, &results.as_json(&conditions))?;
    }
    Ok(())
}

/// Everybody once, then everybody again beginning with the next, so that no one always has the same
/// moment.
async fn compare(server: &Server, options: &Options, chosen: &[&'static Entry]) -> Result<Results> {
    let mut results = Results::new(chosen);
    for repetition in 0..usize::from(options.repeat) {
        if chosen.iter().any(|entry| entry.is_ours()) {
            eprintln!("{}/{} PGMQ alone", repetition + 1, options.repeat);
            results.floors.push(floor::measure(server, options).await?);
        }
        for turn in 0..chosen.len() {
            let row = (turn + repetition) % chosen.len();
            let entry = chosen[row];
            eprint!("{}/{} {} .. ", repetition + 1, options.repeat, entry.name);
            let sample = entry
                .measure(server, options)
                .await
                .map_err(|error| format!("{}: {error}", entry.name))?;
            eprintln!("{:.2} s", sample.load.seconds);
            results.rows[row].samples.push(sample);
        }
    }
    Ok(results)
}
