#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(if = plan == "premium")]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = plan == "premium" && size > 3, timeout = "10s")]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if_not = |input| input.plan == "premium")]
    async fn load(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = input.plan == "premium")]
    async fn read(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse], if = parse)]
    async fn store(parse: Option<&[Package]>) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if(plan: "premium"))]
    async fn write(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
