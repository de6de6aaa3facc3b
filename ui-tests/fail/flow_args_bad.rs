#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile, slug = crate_audit, step_enum = "Step", output_derive = Debug, crate, 3)]
impl CrateAudit {
    #[step = "parse"]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
