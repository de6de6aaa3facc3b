//! The cost of `#[flow]` for the compiler: the time of `cargo check` and of a debug build of a flow
//! of fifty steps, against the same functions without it. See `README.md` beside this folder.

mod measure;
mod source;

use std::{env, error::Error};

use measure::Workspace;
use source::Variant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The budgets of the design: `#[flow]` against the functions alone, and in a build against
/// functions that are called, since others are not built.
const BUDGETS: [(&str, f64); 2] = [("check", 1.6), ("build", 2.0)];

fn main() -> Result<()> {
    let steps = number("BENCH_STEPS", 50)?;
    let runs = number("BENCH_RUNS", 5)?;
    let workspace = Workspace::create(steps)?;
    println!("{steps} steps, median of {runs} runs, {}", measure::UNIT);
    for (command, budget) in BUDGETS {
        let medians = workspace.medians(command, runs)?;
        println!("\ncargo {command}");
        let [plain, called, by_hand, flow] = medians;
        for (variant, median) in Variant::ALL.into_iter().zip(medians) {
            println!("  {:32} {median:6.2} s", variant.what());
        }
        let other = if command == "check" { plain } else { called };
        println!(
            "  `#[flow]` is {:.2} times the functions alone, {:.2} times those that are called, {:.2} times those with handlers",
            flow / plain,
            flow / called,
            flow / by_hand
        );
        println!("  the budget is {budget}; measured: {:.2}", flow / other);
    }
    Ok(())
}

fn number(name: &str, default: usize) -> Result<usize> {
    match env::var(name) {
        Ok(text) => Ok(text
            .parse()
            .map_err(|error| format!("{name} is not a number: {error}"))?),
        Err(_) => Ok(default),
    }
}
