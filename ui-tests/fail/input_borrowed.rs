#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::Package;

pub struct CrateAudit;
pub struct Second;
pub struct Third;

#[flow(input = &str)]
impl CrateAudit {
    #[step]
    async fn parse(input: &str) -> StepResult<Vec<Package>> { unreachable!() }
}

#[flow(input = Vec<&'static str>, step_enum = SecondStep)]
impl Second {
    #[step(map = input)]
    async fn parse(item: &str) -> StepResult<Vec<Package>> { unreachable!() }
}

#[flow(input = impl Clone, step_enum = ThirdStep)]
impl Third {
    #[step]
    async fn parse(input: u8) -> StepResult<Vec<Package>> { unreachable!() }
}

fn main() {}
