#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

// The attribute implements the trait.
#[flow(input = Lockfile)]
impl Flow for CrateAudit {
    type Input = Lockfile;

    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn report(inspect: &[Inspection]) -> StepResult<Report> { unreachable!() }
}

async fn elsewhere(out: CrateAuditOutput) -> Report {
    let _ = (Step::Report, CrateAudit::report(&[]).await);
    let _ = FlowWorker::<CrateAudit>::new();
    out.report
}

fn main() {}
