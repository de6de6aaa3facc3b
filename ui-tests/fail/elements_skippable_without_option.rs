#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse, on_element_failure = "null", when_exhausted = "skip")]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(map = parse, on_element_failure = "null", if_not = { parse: [] })]
    async fn licences(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn report(inspect: Option<Vec<Inspection>>) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [licences])]
    async fn count(licences: Vec<Option<Inspection>>) -> StepResult<u64> { unreachable!() }
}

fn main() {}
