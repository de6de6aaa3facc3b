#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile, timeout = "30 parsecs", base_delay = "500ms")]
impl CrateAudit {
    #[step(start_delay = 30, timeout = "30", base_delay = Duration::from_secs(3))]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(timeout = "1s", base_delay = "soon", start_delay = "")]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
