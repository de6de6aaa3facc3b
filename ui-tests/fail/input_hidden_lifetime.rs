#![allow(unused, elided_lifetimes_in_paths)]

use pgflow::prelude::*;
use pgflow_ui_tests::Report;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
pub struct Name<'a>(&'a str);

mod whole {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Name)]
    impl CrateAudit {
        #[step]
        async fn parse(input: Name<'_>) -> StepResult<Report> { unreachable!() }
    }
}

mod element {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Vec<Name>)]
    impl CrateAudit {
        #[step(map = input)]
        async fn parse(item: Name<'_>) -> StepResult<Report> { unreachable!() }
    }
}

fn main() {}
