#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn load(widget: Report) -> StepResult<Report> { unreachable!() }
    #[step(map = parse)]
    async fn each(load: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
