#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { size > 3 })]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(if = { size <= 3 })]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(if = { size != 3 })]
    async fn load() -> StepResult<Report> { unreachable!() }
    #[step(if = { size: >3 })]
    async fn find(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    #[step(if = { size == 3 })]
    async fn store() -> StepResult<Report> { unreachable!() }
    #[step(if = { size = 3 })]
    async fn wait() -> StepResult<Report> { unreachable!() }
    #[step(if = input.size > 3)]
    async fn print() -> StepResult<Report> { unreachable!() }
    #[step(if = { input.plan: "a" })]
    async fn sum() -> StepResult<Report> { unreachable!() }
}

fn main() {}
