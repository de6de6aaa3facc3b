#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile, max_attempts = 0)]
impl CrateAudit {
    #[step(max_attempts = -1)]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(max_attempts = "3")]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(max_attempts = 1.5)]
    async fn load(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
