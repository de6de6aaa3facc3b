#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Report;

pub struct CrateAudit;
pub struct Plain;

#[flow(input = Plain)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Plain) -> StepResult<Report> { unreachable!() }
    #[step]
    async fn other(input: Plain) -> StepResult<Report> { unreachable!() }
}

fn main() {}
