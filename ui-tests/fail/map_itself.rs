#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(map = parse)]
    async fn parse(item: Package) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
