#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;

// Leaves room for `__0` to `__9`.
#[flow(input = Lockfile, with_step_queues, slug = "audit_every_crate_of_the_whole_tree_of_crate")]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn fetch(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn unpack(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn inspect(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn licences(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn advisories(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn sources(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn owners(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn versions(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn downloads(input: &Lockfile) -> StepResult<()> { unreachable!() }
    #[step]
    async fn report(input: &Lockfile) -> StepResult<()> { unreachable!() }
}

fn main() {}
