#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn load(parse: Vec<Package>, #[cfg(debug_assertions)] input: Lockfile) -> StepResult<Report> { unreachable!() }
}

fn main() {}
