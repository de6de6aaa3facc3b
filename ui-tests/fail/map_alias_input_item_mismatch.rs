#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Package};

pub type Packages = std::collections::VecDeque<Package>;

pub struct CrateAudit;

#[flow(input = Packages)]
impl CrateAudit {
    #[step(map = input)]
    async fn inspect(item: &Inspection) -> StepResult<Packages> { unreachable!() }
    #[step(map = inspect)]
    async fn again(item: Package) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
