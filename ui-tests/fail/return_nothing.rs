#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) { unreachable!() }
}

fn main() {}
