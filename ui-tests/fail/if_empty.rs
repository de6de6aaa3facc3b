#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = {})]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(if_not = {})]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse], if_not = {})]
    async fn load() -> StepResult<Report> { unreachable!() }
}

fn main() {}
