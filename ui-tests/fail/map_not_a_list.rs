#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
