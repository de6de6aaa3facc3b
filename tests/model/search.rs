//! Case after case, until one fails: then the smallest case that still fails.

use std::fmt;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sqlx::postgres::PgConnection;

use super::driver::{Driver, Tally};
use super::generator::{Case, case};
use super::shrink::smaller;

/// The time for the search of a smaller case.
const SHRINKING: Duration = Duration::from_mins(1);

/// A case that fails, made as small as possible.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) seed: u64,
    pub(crate) case: Case,
    pub(crate) calls: Vec<String>,
    pub(crate) difference: String,
    /// The number of cases that were tried on the way.
    tried: usize,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.difference)?;
        writeln!(
            f,
            "\nthe flow (seed {}, made smaller {} times):",
            self.seed, self.tried
        )?;
        write!(f, "{}", self.case.flow)?;
        writeln!(f, "\nthe calls; the last one showed it:")?;
        for call in &self.calls {
            writeln!(f, "  {call}")?;
        }
        Ok(())
    }
}

/// The coverage of a search.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    pub(crate) cases: usize,
    pub(crate) runs: usize,
    pub(crate) calls: usize,
    pub(crate) tally: Tally,
}

/// Tries the cases of these seeds, from the first on, until so many runs have ended.
pub(crate) async fn search(
    connection: &mut PgConnection,
    first_seed: u64,
    runs: usize,
    shrinks: bool,
) -> Result<Covered, Box<Failed>> {
    let mut covered = Covered::default();
    for seed in first_seed.. {
        if covered.runs >= runs {
            break;
        }
        let case = case_of(seed);
        let (calls, result) = try_case(connection, &case, Some(&mut covered.tally)).await;
        covered.cases += 1;
        covered.runs += case.inputs.len();
        covered.calls += calls.len();
        if let Err(difference) = result {
            let mut failed = Failed {
                seed,
                case,
                calls,
                difference,
                tried: 0,
            };
            if shrinks {
                shrink(connection, &mut failed).await;
            }
            return Err(Box::new(failed));
        }
    }
    Ok(covered)
}

fn case_of(seed: u64) -> Case {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let tree = case().new_tree(&mut runner);
    tree.expect("every plan makes a case").current()
}

/// Takes any smaller case that still fails, until there is none.
async fn shrink(connection: &mut PgConnection, failed: &mut Failed) {
    let end = Instant::now() + SHRINKING;
    let mut candidates = smaller(&failed.case).into_iter();
    while let Some(case) = candidates.next() {
        if Instant::now() > end {
            break;
        }
        let (calls, result) = try_case(connection, &case, None).await;
        failed.tried += 1;
        // Without a call, there was no flow.
        if let Some(difference) = result.err().filter(|_| !calls.is_empty()) {
            candidates = smaller(&case).into_iter();
            failed.case = case;
            failed.calls = calls;
            failed.difference = difference;
        }
    }
}

/// Returns the calls that were done, and whether all went well.
async fn try_case(
    connection: &mut PgConnection,
    case: &Case,
    tally: Option<&mut Tally>,
) -> (Vec<String>, Result<(), String>) {
    let mut driver = match Driver::new(connection, case).await {
        Ok(driver) => driver,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let result = driver.drive(case).await;
    if let Some(tally) = tally {
        for (what, count) in driver.tally {
            *tally.entry(what).or_default() += count;
        }
    }
    (driver.calls, result)
}
