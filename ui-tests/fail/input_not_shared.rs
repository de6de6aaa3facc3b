#![allow(unused)]

use std::cell::Cell;

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};
use serde::{Deserialize, Serialize};

/// Not `Sync`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Counted(Cell<u32>);

pub struct CrateAudit;

#[flow(input = Counted)]
impl CrateAudit {
    #[step]
    async fn count(input: &Counted) -> StepResult<Report> {
        std::future::ready(()).await;
        Ok(Report)
    }
    #[step(depends_on = [count])]
    async fn whole(count: Report, input: Counted) -> StepResult<Report> {
        std::future::ready(()).await;
        Ok(Report)
    }
}

fn main() {
    let _ = FlowWorker::<CrateAudit>::new();
}
