#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(when_exhausted = skip)]
    async fn fetch(input: &Lockfile) -> StepResult<Inspection> { unreachable!() }
    #[step(if = { plan: "a" }, when_unmet = SkipMode::SkipCascade)]
    async fn load() -> StepResult<Report> { unreachable!() }
    #[step(when_exhausted = skip-cascade)]
    async fn store() -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [fetch])]
    async fn report(fetch: Option<Inspection>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
