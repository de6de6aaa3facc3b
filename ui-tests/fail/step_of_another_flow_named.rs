#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

pub struct Invoice;

#[flow(input = Lockfile, step_enum = InvoiceStep)]
impl Invoice {
    #[step]
    async fn fetch(input: &Lockfile) -> StepResult<Package> { unreachable!() }
}

#[flow(input = Lockfile, step_enum = CrateAuditStep)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn queue_of<F: Flow>(step: F::Step) {}

fn main() {
    queue_of::<CrateAudit>(InvoiceStep::Fetch);
}
