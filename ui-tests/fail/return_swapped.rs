#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn load(input: Lockfile) -> Result<std::io::Error, Report> { unreachable!() }
    #[step]
    async fn store(input: Lockfile) -> &'static str { unreachable!() }
}

fn main() {}
