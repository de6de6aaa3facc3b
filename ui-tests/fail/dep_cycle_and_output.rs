#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(depends_on = [report])]
    async fn parse(report: Report) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn report(parse: Vec<Package>) -> StepResult<Report> { unreachable!() }
}

fn read(output: CrateAuditOutput) -> Report {
    output.report
}

fn main() {}
