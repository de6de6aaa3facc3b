#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile, timout = "3s")]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [report])]
    async fn fetch(report: Report) -> StepResult<Package> { unreachable!() }
    #[step(depends_on = [fetch])]
    async fn report(fetch: Inspection) -> StepResult<Report> { unreachable!() }
}

fn main() {}
