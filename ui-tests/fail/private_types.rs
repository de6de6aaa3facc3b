#![allow(unused)]

use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

pub struct CrateAudit;
#[derive(Serialize, Deserialize)]
struct Secret;

#[flow(input = Secret)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Secret) -> StepResult<Secret> { unreachable!() }
}

fn main() {}
