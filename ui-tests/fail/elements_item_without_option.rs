#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse, on_element_failure = "null")]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(map = inspect)]
    async fn report(item: Inspection) -> StepResult<Report> { unreachable!() }
}

fn main() {}
