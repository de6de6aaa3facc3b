#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn pages(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = pages)]
    async fn inspect(item: Package, pages: &[Package]) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
