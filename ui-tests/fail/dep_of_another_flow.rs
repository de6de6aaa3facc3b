#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct Other;

mod other {
    use super::*;

    #[flow(input = Lockfile)]
    impl Other {
        #[step]
        pub async fn fetch(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    }
}

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(depends_on = [Other::fetch])]
    async fn report(fetch: Report) -> StepResult<Report> { unreachable!() }
    #[step(map = Other::fetch)]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
}

fn main() {}
