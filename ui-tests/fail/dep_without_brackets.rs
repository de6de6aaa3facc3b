#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = parse, inspect, timeout = "10s")]
    async fn bare(parse: &[Package], inspect: &[Inspection]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = (parse, inspect))]
    async fn round(parse: &[Package], inspect: &[Inspection]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = { parse })]
    async fn braces(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on(parse, inspect))]
    async fn call(parse: &[Package], inspect: &[Inspection]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = "parse", "inspect")]
    async fn strings(parse: &[Package], inspect: &[Inspection]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on[parse])]
    async fn no_equals(parse: &[Package]) -> StepResult<Report> { unreachable!() }
}

fn main() {}
