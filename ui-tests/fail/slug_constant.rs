#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile, slug = SLUG)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = concat!("a", "b"))]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(slug = fetch_v1)]
    async fn load() -> StepResult<Report> { unreachable!() }
}

fn main() {}
