#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;

// Both fall back to their index, and these names would differ.
#[flow(input = Lockfile, with_step_queues)]
impl CrateAudit {
    #[step]
    async fn parse_the_lock_file_of_the_whole_workspace(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(slug = "parse_the_lock_file_of_the_whole_Workspace")]
    async fn parse_again(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
