#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = String)]
impl CrateAudit {
    #[step]
    async fn parse(input: str) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn report(parse: [Package]) -> StepResult<Report> { unreachable!() }
    #[step]
    async fn of(input: dyn std::fmt::Display) -> StepResult<Report> { unreachable!() }
}

fn main() {}
