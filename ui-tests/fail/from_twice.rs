#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn load(#[from(parse)] #[from(parse)] packages: Vec<Package>) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn fetch(#[form(parse)] packages: Vec<Package>) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [parse])]
    async fn store(#[from("parse")] packages: Vec<Package>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
