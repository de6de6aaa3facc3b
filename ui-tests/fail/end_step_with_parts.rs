#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(on = failure, map = parse)]
    async fn alarm(item: Package) -> StepResult<()> { unreachable!() }
    #[step(on = end, depends_on = [parse], if = { a: 1 }, if_not = { a: 1 }, when_unmet = "skip", when_exhausted = "skip")]
    async fn tidy(parse: &[Package], end: &RunEnd) -> StepResult<()> { unreachable!() }
}

fn main() {}
