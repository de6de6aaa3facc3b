#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package};

pub struct CrateAudit;

// `plan` is a field of the flow's input.
#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(if = { plan: "premium" })]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse], if = { plan: "premium" })]
    async fn fetch(parse: Option<Vec<Package>>) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = fetch, if_not = { plan: "free" })]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
