#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;
pub struct Plain;

#[flow(input = Lockfile, base_delay = "5")]
impl CrateAudit {
    const LIMIT: usize = 10;

    #[step]
    async fn parse(&self, input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = prase)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn report(inspect: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step]
    async fn notify() -> StepResult<Plain> { unreachable!() }
}

// All that the flow brings is there all the same.
async fn elsewhere(out: CrateAuditOutput) -> Report {
    let _ = CrateAudit::DEFINITION;
    let _ = [Step::Parse, Step::Inspect, Step::Report, Step::Notify].map(StepId::slug);
    let _ = FlowWorker::<CrateAudit>::new();
    let _ = CrateAudit::report(&[]).await;
    let _ = [0; CrateAudit::LIMIT];
    out.report
}

fn main() {}
