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
    #[step(depends_on = [inspect])]
    async fn report(inspect: Vec<Inspection>) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn count(inspect: &[Inspection]) -> StepResult<u64> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn total(inspect: Option<Vec<Inspection>>) -> StepResult<u64> { unreachable!() }
}

fn main() {}
