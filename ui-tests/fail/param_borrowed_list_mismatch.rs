#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Vec<Package>)]
impl CrateAudit {
    #[step]
    async fn parse(input: &[Inspection]) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn name(parse: &[Inspection]) -> StepResult<String> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect], when_exhausted = "skip")]
    async fn licences(inspect: &[Package]) -> StepResult<Vec<Report>> { unreachable!() }
    #[step(depends_on = [name, licences])]
    async fn report(name: &Report, licences: Option<&[Package]>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
