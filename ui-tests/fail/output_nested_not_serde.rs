#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;
pub struct Plain;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Plain>> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Plain) -> StepResult<Option<Plain>> { unreachable!() }
}

fn main() {}
