#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse], on_element_failure = "null")]
    async fn inspect(parse: Vec<Package>) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn report(inspect: Inspection) -> StepResult<Report> { unreachable!() }
}

fn main() {}
