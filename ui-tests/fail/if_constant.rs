#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { plan: PLAN })]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(if = { plan: concat!("a", "b") })]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(if_not = CONDITION)]
    async fn load() -> StepResult<Report> { unreachable!() }
    #[step(if = !input.paid)]
    async fn store() -> StepResult<Report> { unreachable!() }
}

fn main() {}
