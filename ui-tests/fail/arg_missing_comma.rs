#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile state = Package with_step_queues)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse] timeout = "5s")]
    async fn report(parse: &[Package], state: &Package) -> StepResult<Report> { unreachable!() }
    #[step(map = parse max_attempts = 2)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(max_attempts = 2 timeout = "5s")]
    async fn fetch() -> StepResult<Report> { unreachable!() }
}

fn main() {}
