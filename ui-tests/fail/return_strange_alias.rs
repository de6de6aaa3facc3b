#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;
type ListResult<T> = Result<Vec<T>, std::io::Error>;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> ListResult<Package> { unreachable!() }
}

fn main() {}
