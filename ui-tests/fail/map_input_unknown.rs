#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Report;

pub struct CrateAudit;

#[flow(input = Vec<Ordr>)]
impl CrateAudit {
    #[step(map = input)]
    async fn check(item: Report) -> StepResult<Report> { unreachable!() }
}

mod whole {
    use pgflow::prelude::*;
    use pgflow_ui_tests::Report;

    pub struct CrateAudit;

    #[flow(input = Orders)]
    impl CrateAudit {
        #[step(map = input)]
        async fn check(item: Report) -> StepResult<Report> { unreachable!() }
    }
}

fn main() {}
