#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[cfg_attr(not(test), step(depends_on = [parse]))]
    async fn load(parse: Vec<Package>) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [load])]
    #[cfg_attr(test, allow(unused), cfg(unix))]
    async fn store(load: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
