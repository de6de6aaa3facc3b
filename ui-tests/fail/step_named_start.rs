#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(slug = "parse")]
    async fn start(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = "begin")]
    async fn start_with_id(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn start_many(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    // The name in the database is free.
    #[step(slug = "start")]
    async fn begin(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
