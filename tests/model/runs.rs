//! The search, in four parts that run beside each other.

use std::env;

use super::search::{Covered, search};
use super::setup::prepare;
use crate::support::TestDb;
use crate::support::invariants::assert_invariants;

/// Over all parts.
const USUAL_RUNS: usize = 2000;
const PARTS: usize = 4;

/// The events that the usual number of runs must have reached, in each part.
const REACHED: [&str; 28] = [
    "item completed",
    "item failed",
    "item stale",
    "read while its task runs",
    "refused PF003",
    "refused PF005",
    "refused PF009",
    "run:completed",
    "run:failed",
    "run:started",
    "step:completed",
    "step:failed",
    "step:skipped condition_unmet",
    "step:skipped dependency_skipped",
    "step:skipped handler_failed",
    "step:started",
    "task cancelled",
    "task completed",
    "task failed",
    "task given back or postponed",
    "task given up",
    "task permanently stalled",
    "task postponed at last",
    "task ran alone",
    "task requeued",
    "task skipped",
    "task to blame",
    "task tried again",
];

fn number_in(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is {text:?}; it must be a number")))
}

/// Each part has seeds of its own.
async fn run_part(part: usize, name: &str) {
    let db = TestDb::new().await;
    prepare(&db.pool)
        .await
        .expect("the database can be prepared");
    let mut connection = db.pool.acquire().await.expect("a connection");
    let runs = number_in("PGFLOW_MODEL_RUNS");
    let is_usual = runs.is_none();
    let runs = runs.map_or(USUAL_RUNS, |runs| {
        usize::try_from(runs).expect("a number of runs")
    });
    let seed = number_in("PGFLOW_MODEL_SEED").unwrap_or(1);
    let seed = seed + part as u64 * 1_000_000_000;
    let shrinks = env::var_os("PGFLOW_TEST_MUTATION").is_none();
    let result = search(&mut connection, seed, runs.div_ceil(PARTS), shrinks).await;
    drop(connection);
    match result {
        Ok(covered) => report(&covered, is_usual),
        Err(failed) => panic!(
            "{failed}\nto repeat it: PGFLOW_MODEL_RUNS=1 PGFLOW_MODEL_SEED={} cargo test --test integration {name}",
            failed.seed - part as u64 * 1_000_000_000
        ),
    }
    assert_invariants(&db.pool).await;
}

fn report(covered: &Covered, is_usual: bool) {
    println!(
        "{} cases, {} runs, {} calls",
        covered.cases, covered.runs, covered.calls
    );
    for (what, count) in &covered.tally {
        println!("{count:8} {what}");
    }
    if is_usual {
        for what in REACHED {
            assert!(covered.tally.contains_key(what), "no case reached {what:?}");
        }
    }
}

#[tokio::test]
async fn sql_does_what_the_model_says_1() {
    run_part(0, "sql_does_what_the_model_says_1").await;
}

#[tokio::test]
async fn sql_does_what_the_model_says_2() {
    run_part(1, "sql_does_what_the_model_says_2").await;
}

#[tokio::test]
async fn sql_does_what_the_model_says_3() {
    run_part(2, "sql_does_what_the_model_says_3").await;
}

#[tokio::test]
async fn sql_does_what_the_model_says_4() {
    run_part(3, "sql_does_what_the_model_says_4").await;
}
