#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};

pub struct CrateAudit;

#[flow(input = Lockfile, output_derive = [Clone, Copy])]
impl CrateAudit {
    #[step]
    async fn count(input: &Lockfile) -> StepResult<u32> { unreachable!() }
    #[step]
    async fn name(input: &Lockfile) -> StepResult<String> { unreachable!() }
}

fn main() {}
