#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

mod a_leaf {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
        #[stpe(depends_on = [parse])]
        async fn report(parse: Vec<Package>) -> StepResult<Report> { unreachable!() }
    }
}

mod the_only_one {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[stp]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

fn main() {}
