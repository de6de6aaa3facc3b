#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;
pub struct AppState;

#[flow(input = Lockfile, context = AppState, retries = 2)]
impl CrateAudit {
    #[step(retry_delay = "2s", delay = "1h")]
    async fn parse(input: &Lockfile, state: &AppState) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(for_each = parse, deadline = 60)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(needs = [parse, inspect], when = { parse: [] }, on_failure = "skip")]
    async fn report(parse: Vec<Package>, inspect: &[Inspection]) -> StepResult<Report> { unreachable!() }
    #[step(dependson = [report])]
    async fn tell(report: Option<&Report>) -> StepResult<()> { unreachable!() }
    #[step(order = [parse])]
    async fn notify(parse: Vec<Package>) -> StepResult<()> { unreachable!() }
}

fn main() {}
