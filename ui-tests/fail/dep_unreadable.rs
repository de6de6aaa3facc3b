#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = 3)]
    async fn count(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse count])]
    async fn report(parse: &[Package], count: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
