#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct OfStrings;
pub struct OfText;

mod list {
    use super::*;

    #[flow(input = [String])]
    impl OfStrings {
        #[step]
        async fn parse(input: &[String]) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

mod text {
    use super::*;

    #[flow(input = str, state = dyn Send + Sync)]
    impl OfText {
        #[step]
        async fn parse(input: &str) -> StepResult<Vec<Package>> { unreachable!() }
    }
}

fn main() {}
