//! The lint is on, and finds only the item that the user left without documentation.
#![allow(unused)]
#![deny(missing_docs)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

/// Audits the crates that a lock file pins.
pub struct CrateAudit;

#[flow(input = Lockfile, with_step_queues)]
impl CrateAudit {
    /// Reads the lock file.
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse], when_exhausted = "skip")]
    async fn report(parse: Vec<Package>) -> StepResult<Report> { unreachable!() }
    #[step(map = parse)]
    async fn each(item: Package) -> StepResult<Report> { unreachable!() }
}

pub struct Bare;

fn main() {}
