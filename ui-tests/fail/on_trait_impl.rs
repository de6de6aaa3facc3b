#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl Default for CrateAudit { fn default() -> Self { CrateAudit } }

fn main() {}
