#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;
pub struct AppState(std::rc::Rc<u8>);

#[flow(input = Lockfile, state = AppState)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile, state: &AppState) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = parse)]
    async fn inspect(item: Package, state: &AppState) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [inspect])]
    async fn report(inspect: Vec<Inspection>, state: &AppState) -> StepResult<Report> { unreachable!() }
}

fn elsewhere(state: AppState) {
    let _ = FlowWorker::<CrateAudit>::with_state(state);
}

fn main() {}
