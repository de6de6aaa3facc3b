#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;
pub struct AuditEveryCrateOfTheWholeDependencyTreeTwice;

#[flow(input = Lockfile)]
impl AuditEveryCrateOfTheWholeDependencyTreeTwice {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
