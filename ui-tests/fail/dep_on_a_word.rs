#![allow(unused)]

use pgflow::{StepContext, prelude::*};
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [state])]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [ctx])]
    async fn fetch(ctx: &StepContext) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [item])]
    async fn load(item: Package) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [LIMIT])]
    async fn store() -> StepResult<Report> { unreachable!() }
    const LIMIT: usize = 3;
}

fn main() {}
