#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = "load")]
    async fn first(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    #[step(slug = "load", depends_on = [first])]
    async fn second(first: Report) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [first, second], if = { first: 1 })]
    async fn third(first: Report, second: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
