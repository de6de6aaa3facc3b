#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile, state: Package)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(timeout: "5s", max_attempts == 3)]
    async fn report() -> StepResult<Report> { unreachable!() }
}

fn main() {}
