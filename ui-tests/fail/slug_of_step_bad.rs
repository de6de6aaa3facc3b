#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(slug = "parse-lock")]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = "Parse_2")]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn parse_2(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = input)]
    async fn load(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = "find")]
    async fn item(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
