#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

#[flow(input = Lockfile, step_enum = OtherStep, output = Other)]
impl CrateAudit {
    #[step]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
