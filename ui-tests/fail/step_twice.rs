#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    #[step(timeout = "5s")]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(max_attempts = 3, timeout = "5s")]
    #[step(depends_on = [parse], timeout = "7s")]
    async fn report(parse: &[Package]) -> StepResult<u8> { unreachable!() }
}

fn main() {}
