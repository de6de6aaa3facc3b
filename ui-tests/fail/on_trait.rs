#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

#[flow(input = Lockfile)]
pub trait CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>>;
    #[step(depends_on = [parse])]
    async fn load(#[from(parse)] packages: Vec<Package>) -> StepResult<Report>;
}

fn main() {}
