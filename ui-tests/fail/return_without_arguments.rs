#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult { unreachable!() }
    #[step]
    async fn fetch(input: &Lockfile) -> Result { unreachable!() }
    #[step]
    async fn load(input: &Lockfile) -> anyhow::Result { unreachable!() }
    #[step]
    async fn write(input: &Lockfile) -> std::fmt::Result { unreachable!() }
    #[step(depends_on = [parse, fetch])]
    async fn report(parse: &[Package], fetch: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
