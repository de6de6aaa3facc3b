#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;
pub struct AppState;

#[flow(input = Lockfile, state = AppState)]
impl CrateAudit {
    #[step]
    async fn parse(order: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn report(lines: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn store(parse: &[Package], shop: &AppState, context: &StepContext) -> StepResult<Report> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(package: Package) -> StepResult<Inspection> { unreachable!() }
    #[step]
    async fn typo(prase: &u8) -> StepResult<Inspection> { unreachable!() }
    #[step]
    async fn nothing(config: &u8) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
