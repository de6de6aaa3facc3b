#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn load(input: Lockfile) -> StepResult<Self::Out> { unreachable!() }
    #[step(depends_on = [load])]
    async fn fetch(load: Self::Out) -> StepResult<Report> { unreachable!() }
}

fn main() {}
