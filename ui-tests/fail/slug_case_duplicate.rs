#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    #[allow(non_snake_case)]
    async fn Parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
