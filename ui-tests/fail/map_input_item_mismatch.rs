#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Package};

pub struct CrateAudit;

#[flow(input = Vec<Package>)]
impl CrateAudit {
    #[step(map = input)]
    async fn inspect(item: Inspection) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
