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

// rustc does not go on to count the arguments.
fn main() {
    let _ = FlowWorker::<CrateAudit>::new(AppState).concurrency(2);
}
