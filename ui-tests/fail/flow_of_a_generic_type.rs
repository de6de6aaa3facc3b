#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(Vec<Package>, max_attempts = 2)]
impl CrateAudit {
    #[step(map = input)]
    async fn each(item: Package) -> StepResult<Report> { unreachable!() }
}

fn main() {}
