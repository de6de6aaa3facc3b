#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse], if = { prase: [{ name: "serde" }] }, if_not = { plan: "free" })]
    async fn fetch(parse: Vec<Package>) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
