#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(if = "premium")]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if)]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { plan = "premium" })]
    async fn load(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { plan: premium })]
    async fn store(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
