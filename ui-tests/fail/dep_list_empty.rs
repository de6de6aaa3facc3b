#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [])]
    async fn fetch(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [])]
    async fn report(parse: &[Package], fetch: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
