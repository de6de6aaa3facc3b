#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(on = end)]
    async fn tidy(end: &RunEnd) -> StepResult<()> { unreachable!() }
    #[step(on = failure)]
    async fn alarm(end: &RunEnd) -> StepResult<()> { unreachable!() }
    #[step(on = end)]
    async fn tell(end: &RunEnd) -> StepResult<()> { unreachable!() }
}

fn main() {}
