#![allow(unused)]

use pgflow::prelude::*;

pub struct CrateAudit;

#[flow(input = Vec<u32>)]
impl CrateAudit {
    #[step(map = input, if = { plan: "premium" })]
    async fn double(item: u32) -> StepResult<u32> { unreachable!() }
}

fn main() {}
