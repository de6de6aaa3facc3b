#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(if = { plan: "a", plan: "b" })]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { plan: "a\0" })]
    async fn fetch(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { size: 18446744073709551616 })]
    async fn load(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if = { size: 3u8 })]
    async fn store(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if_not = { list: [1 2] })]
    async fn send(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if_not = { plan: })]
    async fn check(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(if_not = { 3: "a" })]
    async fn clean(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
