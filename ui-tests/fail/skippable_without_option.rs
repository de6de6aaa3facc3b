#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse], when_exhausted = "skip")]
    async fn licences(parse: Vec<Package>) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [licences])]
    async fn report(licences: Inspection) -> StepResult<Report> { unreachable!() }
}

fn main() {}
