#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile, state = Package)]
impl CrateAudit {
    #[step(map(parse))]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(timeout("30s"), max_attempts(3), when_exhausted("skip"))]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = [parse])]
    async fn bracket(item: Package) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse())]
    async fn call(item: Package) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = Self::parse)]
    async fn path(item: Package) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
