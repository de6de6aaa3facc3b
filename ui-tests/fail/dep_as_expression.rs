#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [&parse])]
    async fn report(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(map = &parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(map = parse.iter())]
    async fn each(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [parse.await?, (each)])]
    async fn load(parse: &[Package], each: &[Inspection]) -> StepResult<Report> { unreachable!() }
    #[step(map = input.packages)]
    async fn of_input(item: Package) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse each])]
    async fn store(parse: &[Package], each: &[Inspection]) -> StepResult<Report> { unreachable!() }
}

fn main() {}
