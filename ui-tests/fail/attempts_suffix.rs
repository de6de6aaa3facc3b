#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(max_attempts = 3times)]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(max_attempts = 5x)]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(max_attempts = "3")]
    async fn load() -> StepResult<Report> { unreachable!() }
    #[step(max_attempts = 3.0)]
    async fn store() -> StepResult<Report> { unreachable!() }
    #[step(max_attempts = ATTEMPTS)]
    async fn wait() -> StepResult<Report> { unreachable!() }
}

fn main() {}
