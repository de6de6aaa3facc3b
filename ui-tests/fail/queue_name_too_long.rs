#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;
pub struct AuditEveryCrateOfTheWholeDependencyTreeX;

#[flow(input = Lockfile, with_step_queues)]
impl AuditEveryCrateOfTheWholeDependencyTreeX {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
