#![allow(unused)]

use pgflow::{StepContext, prelude::*};
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile, state = Package)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn load(state: &mut Package, ctx: &mut StepContext, parse: &mut [Package]) -> StepResult<Report> { unreachable!() }
    #[step]
    async fn fetch(input: &dyn std::fmt::Debug) -> StepResult<Report> { unreachable!() }
}

fn main() {}
