#![allow(unused)]

use std::pin::Pin;

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    fn load(input: Lockfile) -> Pin<Box<dyn Future<Output = StepResult<Report>> + Send>> { unreachable!() }
    #[step]
    fn fetch(input: Lockfile) -> impl Future<Output = Result<Report, std::io::Error>> + Send { async { unreachable!() } }
    #[step]
    async fn store(input: Lockfile) -> impl Future<Output = Report> { async { unreachable!() } }
}

fn main() {}
