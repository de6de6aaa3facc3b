#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {
    let _ = StepWorker::<CrateAudit>::all().step(Step::Parse, |worker| worker.concurrency(2));
}
