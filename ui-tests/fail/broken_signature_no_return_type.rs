#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

// rustc gives up on the rest of a block at such a place, and says so twice: for the block as it stands here, and as the macro leaves it.
#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn report(parse: Vec<Package>) -> StepResult<Report> { unreachable!() }
}

async fn elsewhere(out: CrateAuditOutput) -> Report {
    let _ = (Step::Report, CrateAudit::report(Vec::new()).await);
    out.report
}

fn main() {}
