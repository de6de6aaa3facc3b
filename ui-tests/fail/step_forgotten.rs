#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    async fn helper(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    fn plain(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    async fn listed(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse, helper])]
    async fn report(helper: Report) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [plain])]
    async fn second(plain: Report) -> StepResult<Report> { unreachable!() }
    #[step(map = listed)]
    async fn third(item: Package) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn fourth(parse: &[Package], helper: &Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
