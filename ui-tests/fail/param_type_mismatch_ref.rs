#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> Result<Package, std::io::Error> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn report(parse: &str) -> StepResult<Report> { unreachable!() }
}

fn main() {}
