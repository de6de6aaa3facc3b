#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = "load_v1")]
    async fn load(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    #[step(slug = "a_v1", depends_on = [b])]
    async fn a() -> StepResult<Report> { unreachable!() }
    #[step(slug = "b_v1", depends_on = [a])]
    async fn b() -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [load, load])]
    async fn last(load: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
