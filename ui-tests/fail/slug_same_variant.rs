#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn fetch_1(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn fetch1(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
