#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [Step::Parse])]
    async fn report(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(map = Step::Parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [FetchAll, CrateAuditStep::Parse])]
    async fn load(fetch_all: Report, parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step]
    async fn fetch_all() -> StepResult<Report> { unreachable!() }
}

fn main() {}
