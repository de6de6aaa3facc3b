#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(inputs = Lockfile, with-step-queues)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(max-attempts = 3, depends-on = [parse])]
    async fn report(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(r#maps = parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
