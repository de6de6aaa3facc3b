#![allow(unused, elided_lifetimes_in_paths)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
pub struct Name<'a>(&'a str);

mod dependency {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse() -> StepResult<Name> { unreachable!() }
        #[step(depends_on = [parse])]
        async fn report(parse: Name<'_>) -> StepResult<Report> { unreachable!() }
    }
}

mod element {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse() -> StepResult<Vec<Name>> { unreachable!() }
        #[step(map = parse)]
        async fn inspect(item: Name<'_>) -> StepResult<Report> { unreachable!() }
    }
}

mod of_map {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse() -> StepResult<Vec<Report>> { unreachable!() }
        #[step(map = parse)]
        async fn inspect() -> StepResult<Name> { unreachable!() }
        #[step(depends_on = [inspect])]
        async fn report(inspect: Vec<Name<'_>>) -> StepResult<Report> { unreachable!() }
    }
}

mod taken {
    use super::*;

    pub struct CrateAudit;

    #[flow(input = Lockfile)]
    impl CrateAudit {
        #[step]
        async fn parse(input: &Lockfile) -> StepResult<Name> { unreachable!() }
        #[step(depends_on = [parse])]
        async fn report(parse: Name<'_>) -> StepResult<Report> { unreachable!() }
    }
}

fn main() {}
