#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(if = { plan: "premium" })]
    async fn report(input: &Lockfile) -> StepResult<Report> { unreachable!() }
}

fn show(out: CrateAuditOutput) -> Report {
    out.report
}

fn main() {}
