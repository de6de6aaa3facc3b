#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

#[flow(input = Lockfile)]
pub struct CrateAudit;

fn main() {}
