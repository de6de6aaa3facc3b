#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

mod enum_is_the_flow {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile, step_enum = CrateAudit)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

mod output_is_the_flow {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile, output = CrateAudit)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

mod output_is_the_enum {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile, output = Step)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

mod the_flow_is_called_step {
    use super::*;

    pub struct Step;

    #[flow(input = Lockfile)]
    impl Step {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Package> { unreachable!() }
    }
}

fn main() {}
