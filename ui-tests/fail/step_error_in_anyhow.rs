#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> anyhow::Result<Vec<Package>> {
        let error: anyhow::Error = StepError::permanent("no such file");
        Err(error)
    }
}

fn main() {}
