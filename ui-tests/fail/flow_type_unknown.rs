#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn report(inspect: &[Inspection]) -> StepResult<Report> { unreachable!() }
}

fn main() {}
