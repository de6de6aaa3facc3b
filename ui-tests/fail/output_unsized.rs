#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<[Package]> { unreachable!() }
    #[step]
    async fn name(input: &Lockfile) -> anyhow::Result<str> { unreachable!() }
    #[step]
    async fn of(input: &Lockfile) -> Result<dyn std::fmt::Display, StepError> { unreachable!() }
    #[step(depends_on = [parse, name])]
    async fn report(parse: &[Package], name: &str) -> StepResult<Report> { unreachable!() }
}

fn main() {}
