#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

pub struct AppState;

#[flow(input = Lockfile, state = AppState)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile, state: AppState) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
