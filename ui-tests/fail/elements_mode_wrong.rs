#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse, on_element_failure = "nul")]
    async fn inspect(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(map = parse, on_element_failure = "skip")]
    async fn licences(item: Package) -> StepResult<Inspection> { unreachable!() }
    #[step(map = parse, on_element_failure = null)]
    async fn sizes(item: Package) -> StepResult<u64> { unreachable!() }
    #[step(map = parse, on_item_failure = "null")]
    async fn ages(item: Package) -> StepResult<u64> { unreachable!() }
    #[step(map = parse, on_element_failure = None)]
    async fn names(item: Package) -> StepResult<String> { unreachable!() }
}

fn main() {}
