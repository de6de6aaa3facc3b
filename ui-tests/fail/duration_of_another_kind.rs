#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(timeout = "00:05:00", base_delay = "500ms")]
    async fn report() -> StepResult<Report> { unreachable!() }
    #[step(timeout = "1.5h", base_delay = "30 sec")]
    async fn fetch() -> StepResult<Report> { unreachable!() }
    #[step(timeout = Duration::from_secs(30), base_delay = Duration::from_millis(1500))]
    async fn load() -> StepResult<Report> { unreachable!() }
    #[step(timeout = TIMEOUT, base_delay = concat!("5", "s"))]
    async fn store() -> StepResult<Report> { unreachable!() }
    #[step(timeout = None, start_delay = "5m"s)]
    async fn wait() -> StepResult<Report> { unreachable!() }
}

fn main() {}
