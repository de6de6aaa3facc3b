#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package};

pub struct CrateAudit;

type Packages = Vec<Package>;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Packages> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Inspection) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
