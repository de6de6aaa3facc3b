#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;

trait Audit {
    async fn parse(input: &Lockfile) -> StepResult<u8>;
}

#[flow(input = Lockfile)]
impl Audit for CrateAudit {
    #[step]
    async fn parse(#[from(input)] lockfile: &Lockfile) -> StepResult<u8> { unreachable!() }
}

fn main() {}
