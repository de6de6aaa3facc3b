#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};

macro_rules! steps {
    ($name:ident) => {
        #[step]
        async fn $name(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    };
}

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    steps!(parse);
    steps! { fetch }
}

mod beside_a_step {
    use super::*;

    pub struct Invoice;

    #[flow(input = Lockfile)]
    impl Invoice {
        #[step]
        async fn load(input: &Lockfile) -> StepResult<Report> { unreachable!() }
        steps!(parse);
    }
}

fn main() {}
