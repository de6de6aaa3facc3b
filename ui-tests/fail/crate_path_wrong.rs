#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

mod no_crate {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile, crate = ::pgflw)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
        #[step(map = parse)]
        async fn inspect(item: Package, ctx: &StepContext) -> StepResult<Inspection> { unreachable!() }
    }
}

mod other_module {
    use super::*;

    pub mod inner {}

    pub struct CrateAudit;

    #[flow(input = Lockfile, crate = inner)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
        #[step(map = parse)]
        async fn inspect(item: Package, ctx: &StepContext) -> StepResult<Inspection> { unreachable!() }
    }
}

fn main() {}
