#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(if = { plan: "premium" }, when_unmet = "skip-cascade")]
    async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn report(parse: Option<Package>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
