#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Lockfile;

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step(depends_on = [b])]
    async fn a() -> StepResult<()> { unreachable!() }
    #[step(depends_on = [c])]
    async fn b() -> StepResult<()> { unreachable!() }
    #[step(depends_on = [d])]
    async fn c() -> StepResult<()> { unreachable!() }
    #[step(depends_on = [e])]
    async fn d() -> StepResult<()> { unreachable!() }
    #[step(depends_on = [a])]
    async fn e() -> StepResult<()> { unreachable!() }
}

fn main() {}
