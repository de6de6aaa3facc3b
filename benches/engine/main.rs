//! The cost of the engine: throughput, latency, processor time, statements and WAL, over any
//! Postgres.
//!
//! `cargo bench --bench engine -- [SCENARIO ..] [options]`, see `benches/README.md`.

mod check;
mod floor;
mod flows;
mod history;
mod idle;
mod latency;
#[path = "../support/load.rs"]
mod load;
mod options;
mod plan;
#[path = "../support/queue.rs"]
mod queue;
mod report;
mod scenario;
mod server;
mod start;
mod starvation;
mod throughput;
mod variant;
mod work;

use std::process::ExitCode;

use clap::Parser;

use options::{Cli, Hidden, Options};
use report::About;
use server::{Place, Server};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(benchmark(Cli::parse())).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(error) = source {
                eprintln!("  because: {error}");
                source = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn benchmark(Cli { hidden, options }: Cli) -> Result<()> {
    if let Some(Hidden::Serve(options)) = hidden {
        return latency::serve(&options).await;
    }
    let server = Server::start(&options).await?;
    let measured = run(&server, &options).await;
    server.stop().await?;
    measured
}

async fn run(server: &Server, options: &Options) -> Result<()> {
    let mut places = plan::places(server, options).await?;
    let about = About::read(&places[0].pool, server.is_private()).await?;
    println!("{}", about.line());
    let mut records = Vec::new();
    let measured = plan::measure(&mut places, options, &mut records).await;
    let notes = notes(&places);
    for place in places {
        place.restore().await?;
    }
    for note in &notes {
        println!("note: {note}");
    }
    print!("{}", report::show(&records));
    if let Some(file) = &options.json {
        report::write(file, &about, options, &notes, &records)?;
    }
    // What was measured before something went wrong is shown anyway.
    measured
}

/// Returns the unknown figures with the reasons: a line each.
fn notes(places: &[Place]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in places.iter().flat_map(|place| place.meter.notes()) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}
