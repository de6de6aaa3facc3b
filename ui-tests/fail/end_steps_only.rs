#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(on = end)]
    async fn tidy(end: &RunEnd) -> StepResult<()> { unreachable!() }
}

fn main() {}
