#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async unsafe fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async extern "C" fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn load(input: &Lockfile) -> StepResult<impl Send> { Ok(()) }
    #[step]
    async fn store(input: &Lockfile) -> StepResult<Vec<_>> { unreachable!() }
}

fn main() {}
