#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(depends_on = [fetch, inspect])]
    async fn parse(fetch: Package, inspect: Inspection) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn fetch(parse: Report) -> StepResult<Package> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn inspect(parse: Report) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
