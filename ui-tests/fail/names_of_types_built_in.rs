#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile, step_enum = u8, output = bool)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
