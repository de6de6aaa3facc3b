#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(on = end)]
    async fn tidy(end: &RunEnd) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse, tidy])]
    async fn report(parse: &[Package], tidy: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(map = tidy)]
    async fn inspect(item: Package) -> StepResult<Report> { unreachable!() }
}

fn main() {}
