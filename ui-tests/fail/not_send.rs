#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};

pub struct CrateAudit;
async fn save(_: &str) {}

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> {
        let name = std::rc::Rc::new(input.plan.clone());
        save(&name).await;
        Ok(vec![])
    }
}

fn main() {}
