#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;
pub struct AppState;

#[flow(input = Lockfile, with_step_queues)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {
    let _ = StepWorker::<CrateAudit>::new(Step::Parse, AppState);
    let _ = StepWorker::<CrateAudit>::all(AppState);
    let _ = StepWorker::<CrateAudit>::all_with_state(AppState);
}
