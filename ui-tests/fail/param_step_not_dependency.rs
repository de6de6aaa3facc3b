#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn inspect(parse: Vec<Package>) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn report(parse: Vec<Package>, inspect: Inspection) -> StepResult<Report> { unreachable!() }
}

fn main() {}
