#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { plan: "a" }, if_not = { plan: "a" })]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(if = { plan: "a", size: [1, 2], user: { name: "x", age: 3.0 } }, if_not = { user: { age: 3 }, size: [2] })]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse], if = { parse: [{ name: "a" }] }, if_not = { parse: [] })]
    async fn load() -> StepResult<Report> { unreachable!() }
}

fn main() {}
