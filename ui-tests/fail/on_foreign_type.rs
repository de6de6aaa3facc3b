#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

#[flow(input = Lockfile)]
impl (u8, u8) {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<u8> { unreachable!() }
}

fn main() {}
