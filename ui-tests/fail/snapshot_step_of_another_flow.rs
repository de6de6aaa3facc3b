#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;
pub struct Invoice;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

mod invoice {
    use super::*;

    #[flow(input = Lockfile)]
    impl Invoice {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

fn elsewhere(run: &pgflow::client::RunSnapshot<CrateAudit>) {
    let _ = run.step(Step::Parse);
    let _ = run.step(invoice::Step::Parse);
    let _ = run.tasks(invoice::Step::Parse);
}

fn main() {}
