#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(if = { plan: "premium" })]
    async fn fetch(input: &Lockfile) -> StepResult<Option<Package>> { unreachable!() }
    #[step(depends_on = [fetch])]
    async fn report(fetch: Option<Package>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
