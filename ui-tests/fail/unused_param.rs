#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Report> { Ok(Report) }
    #[step(depends_on = [parse])]
    async fn after(_parse: Report) -> StepResult<Report> { missing() }
}

fn main() {}
