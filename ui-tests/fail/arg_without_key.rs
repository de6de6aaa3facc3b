#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(Lockfile, Report; timeout = "5s")]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile, state: &Report) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(parse)]
    async fn fetch(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step("parse")]
    async fn load(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse as packages])]
    async fn store(packages: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [packages = parse]; timeout = "5s")]
    async fn print(packages: &[Package]) -> StepResult<Report> { unreachable!() }
}

fn main() {}
