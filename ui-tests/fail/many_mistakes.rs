#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;
pub struct Plain;

#[flow(input = Lockfile, timout = "3s")]
impl CrateAudit {
    #[step(depends_on = [prase], max_attempts = 0)]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn inspect(parse: Vec<Inspection>, contxt: u8) -> StepResult<Plain> { unreachable!() }
    #[step(depends_on = [inspect], timeout = 30)]
    fn report(inspect: &Plain) -> StepResult<Report> { unreachable!() }
}

fn main() {
    let s = Step::Report;
    let o: Option<CrateAuditOutput> = None;
    let _ = pgflow::FlowWorker::<CrateAudit>::new();
}
