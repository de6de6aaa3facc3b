#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { size: 3kb })]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(slug = "load"s)]
    async fn load() -> StepResult<Report> { unreachable!() }
    #[step(if = { plan: "a"b })]
    async fn store() -> StepResult<Report> { unreachable!() }
}

fn main() {}
