#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(on = failure)]
    async fn alarm(item: Package, input: &RunEnd) -> StepResult<()> { unreachable!() }
    #[step(on = end)]
    async fn tidy(parse: &[Package], error: &RunEnd) -> StepResult<()> { unreachable!() }
}

fn main() {}
