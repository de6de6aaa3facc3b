#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package, Report};

mod no_type {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input) -> StepResult<Vec<Package>> { unreachable!() }
        #[step(depends_on = [parse])]
        async fn report(parse: Vec<Package>) -> StepResult<Report> { unreachable!() }
    }
}

mod no_body {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>>;
        #[step(depends_on = [parse])]
        async fn report(parse: Vec<Package>) -> StepResult<Report> { unreachable!() }
    }
}

fn main() {
    let _ = (no_type::Step::Report, no_body::Step::Report);
}
