#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl Default for CrateAudit {
    fn default() -> Self {
        CrateAudit
    }
}

fn main() {
    let _ = CrateAudit::default();
}
