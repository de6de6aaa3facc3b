#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { plan: "a" })]
    async fn fetch(input: Lockfile) -> StepResult<Option<Report>> { unreachable!() }
    #[step(depends_on = [fetch])]
    async fn load(fetch: Option<Report>) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [fetch])]
    async fn store(fetch: &Report) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [fetch])]
    async fn right(fetch: Option<&Option<Report>>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
