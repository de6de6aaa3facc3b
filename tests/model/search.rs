//! Case after case, until one fails: then the smallest case that still fails.

use std::fmt;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sqlx::postgres::PgConnection;

use super::driver::{Driver, Tally};
use super::generator::{Case, case};

/// How long to look for a smaller case.
const SHRINKING: Duration = Duration::from_secs(60);

/// A case that fails, made as small as possible.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) seed: u64,
    pub(crate) case: Case,
    pub(crate) calls: Vec<String>,
    pub(crate) difference: String,
    /// How many cases were tried on the way.
    tried: usize,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.difference)?;
        writeln!(f, "\nthe flow (seed {}, made smaller {} times):", self.seed, self.tried)?;
        write!(f, "{}", self.case.flow)?;
        writeln!(f, "\nthe calls; the last one showed it:")?;
        for call in &self.calls {
            writeln!(f, "  {call}")?;
        }
        Ok(())
    }
}

/// What a search covered.
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
        let mut tree = tree(seed);
        let case = tree.current();
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
                shrink(connection, &mut tree, &mut failed).await;
            }
            return Err(Box::new(failed));
        }
    }
    Ok(covered)
}

fn tree(seed: u64) -> impl ValueTree<Value = Case> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    case()
        .new_tree(&mut runner)
        .expect("every plan makes a case")
}

async fn shrink(
    connection: &mut PgConnection,
    tree: &mut impl ValueTree<Value = Case>,
    failed: &mut Failed,
) {
    let end = Instant::now() + SHRINKING;
    let mut can_go_on = tree.simplify();
    while can_go_on && Instant::now() < end {
        let case = tree.current();
        let (calls, result) = try_case(connection, &case, None).await;
        failed.tried += 1;
        can_go_on = match result {
            Ok(()) => tree.complicate(),
            Err(difference) => {
                failed.case = case;
                failed.calls = calls;
                failed.difference = difference;
                tree.simplify()
            }
        };
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
