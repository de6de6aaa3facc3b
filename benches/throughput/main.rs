//! How many tasks and runs a second, with handlers that do nothing: what remains is the cost of the engine.
//!
//! `cargo bench --bench throughput [-- FLOW ..]`, see `benches/README.md`.

mod flows;
mod measure;
#[path = "../support/mod.rs"]
mod support;

use measure::{Measured, Scale, measure};

const NAMES: [&str; 4] = ["one", "chain3", "diamond", "map"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo passes `--bench`, and filters of its own.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(format!("there is no flow `{unknown}`; the flows are {NAMES:?}").into());
    }
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let scale = Scale::from_env()?;

    let connections = u32::try_from(scale.concurrency)?.clamp(4, 10);
    let (database, pool) = support::database(connections).await?;
    println!("{scale}");
    println!("{}", Measured::HEADER);
    let unit = serde_json::Value::Null;
    if chosen("one") {
        println!("{}", measure::<flows::One>(&pool, &scale, &unit, 1).await?);
    }
    if chosen("chain3") {
        println!(
            "{}",
            measure::<flows::Chain3>(&pool, &scale, &unit, 3).await?
        );
    }
    if chosen("diamond") {
        println!(
            "{}",
            measure::<flows::Diamond>(&pool, &scale, &unit, 4).await?
        );
    }
    if chosen("map") {
        let elements: Vec<u64> = (0..scale.elements as u64).collect();
        let one_run = Scale {
            runs: scale.map_runs,
            ..scale
        };
        println!(
            "{}",
            measure::<flows::Map>(&pool, &one_run, &elements, scale.elements).await?
        );
    }
    pool.close().await;
    drop(database);
    Ok(())
}
