#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

pub struct Invoice;

#[flow(input = Lockfile, step_enum = InvoiceStep, with_step_queues)]
impl Invoice {
    #[step]
    async fn fetch(input: &Lockfile) -> StepResult<Package> { unreachable!() }
}

#[flow(input = Lockfile, step_enum = CrateAuditStep, with_step_queues)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {
    let _ = StepWorker::<CrateAudit>::new(InvoiceStep::Fetch);
}
