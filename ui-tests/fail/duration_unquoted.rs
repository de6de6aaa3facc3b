#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(timeout = 5m, start_delay = 500ms, base_delay = 1h30m)]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(timeout = -5, base_delay = 1.5h)]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(timeout = 1s, base_delay = 0)]
    async fn load() -> StepResult<Report> { unreachable!() }
    #[step(start_delay = 7 timeout = 9m)]
    async fn store() -> StepResult<Report> { unreachable!() }
}

fn main() {}
