#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;
pub struct AppState;

#[flow(input = Lockfile, state = AppState)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {
    let _ = FlowWorker::<CrateAudit>::with_state(3);
}
