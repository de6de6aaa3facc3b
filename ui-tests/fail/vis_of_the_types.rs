#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

mod flows {
    use super::*;

    struct CrateAudit;

    #[flow(input = Lockfile, vis = pub(self))]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod quoted {
    use super::*;

    struct CrateAudit;

    #[flow(input = Lockfile, vis = "pub(crate)")]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod other_word {
    use super::*;

    struct CrateAudit;

    #[flow(input = Lockfile, visibility = private)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

fn main() {
    let _ = flows::Step::Parse;
}
