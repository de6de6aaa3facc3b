#![allow(unused)]

use std::{fmt::Display, time::Instant};

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn started(input: &Lockfile) -> StepResult<Instant> { unreachable!() }
    #[step]
    async fn shown(input: &Lockfile) -> StepResult<Box<dyn Display + Send + Sync>> { unreachable!() }
}

fn main() {}
