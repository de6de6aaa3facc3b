#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Report;

pub struct CrateAudit;
pub struct Plain;

#[flow(input = Vec<Plain>)]
impl CrateAudit {
    #[step(map = input)]
    async fn each(item: &Plain) -> StepResult<Report> { unreachable!() }
    #[step(map = input)]
    async fn each_by_value(item: Plain, input: Vec<Plain>) -> StepResult<Report> { unreachable!() }
    #[step]
    async fn all(input: &[Plain]) -> StepResult<Report> { unreachable!() }
}

fn main() {}
