#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

mod other {
    use super::*;

    pub struct Invoice;

    #[flow(input = Lockfile, with_step_queues)]
    impl Invoice {
        #[step]
        async fn fetch(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

#[flow(input = Lockfile, with_step_queues)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {
    let _ = StepWorker::<CrateAudit>::new(other::Step::Fetch);
    let _ = StepWorker::<CrateAudit>::with_state("parse", ());
    let _ = StepWorker::<Package>::new(Step::Parse);
}
