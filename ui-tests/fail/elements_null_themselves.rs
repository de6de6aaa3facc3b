#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse, on_element_failure = "null")]
    async fn inspect(item: Package) -> StepResult<Option<Inspection>> { unreachable!() }
    #[step(map = parse, on_element_failure = "null")]
    async fn notify(item: Package) -> StepResult<()> { unreachable!() }
    #[step(depends_on = [inspect, notify])]
    async fn report(inspect: Vec<Option<Inspection>>, notify: Vec<Option<()>>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
