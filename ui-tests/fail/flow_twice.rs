#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
#[flow(input = Lockfile, output_derive = [Clone])]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

pub struct Fetch;

#[flow]
#[pgflow::flow(input = Lockfile, step_enum = FetchStep)]
impl Fetch {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
