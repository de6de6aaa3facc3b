#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

mod step_before {
    use super::*;

    pub struct Step;
    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod step_behind {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }

    pub enum Step {}
}

mod chosen {
    use super::*;

    pub struct AuditStep;
    pub struct CrateAudit;

    #[flow(input = Lockfile, step_enum = AuditStep)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod output {
    use super::*;

    pub struct CrateAuditOutput;
    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
        #[step]
        async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

fn main() {}
