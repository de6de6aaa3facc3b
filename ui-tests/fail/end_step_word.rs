#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(on = "failure")]
    async fn quoted(end: &RunEnd) -> StepResult<()> { unreachable!() }
    #[step(on = success)]
    async fn unknown(end: &RunEnd) -> StepResult<()> { unreachable!() }
    #[step(on = always)]
    async fn another(end: &RunEnd) -> StepResult<()> { unreachable!() }
    #[step(on)]
    async fn nothing(end: &RunEnd) -> StepResult<()> { unreachable!() }
}

fn main() {}
