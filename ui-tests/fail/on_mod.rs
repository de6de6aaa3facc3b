#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

#[flow(input = Lockfile)]
pub mod audit {
    use super::*;

    pub struct CrateAudit;

    impl CrateAudit {
        #[step]
        pub async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
        #[step(depends_on = [parse])]
        pub async fn load(#[from(parse)] packages: Vec<Package>) -> StepResult<Report> { unreachable!() }
    }
}

fn main() {}
