#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

mod bare {
    use super::*;

    pub struct CrateAudit;

    #[flow(output_derive = Debug, Clone, input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod call {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile, output_derive(Debug, std::clone::Clone))]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod strings {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile, output_derive = "Debug", with_step_queues)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

fn elsewhere(bare: bare::CrateAuditOutput, call: call::CrateAuditOutput) {
    println!("{:?}, {:?}", bare.clone(), call.clone());
}

fn main() {}
