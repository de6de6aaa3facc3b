#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = prase)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(map = inspect_everything, if = { parse: [] })]
    async fn again(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(map = [parse])]
    async fn listed(item: Package) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
