#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};

pub struct CrateAudit;
pub struct Plain;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Plain> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn report(parse: Plain) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn other(parse: &Plain) -> StepResult<Report> { unreachable!() }
}

fn main() {}
