#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;
use serde::Serialize;

pub struct CrateAudit;
#[derive(Serialize)]
pub struct Half;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Half> { unreachable!() }
}

fn main() {}
