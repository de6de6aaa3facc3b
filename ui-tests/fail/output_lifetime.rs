#![allow(unused)]

use std::borrow::Cow;

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Cow<'_, str>> { unreachable!() }
    #[step]
    async fn fetch() -> StepResult<Cow<'_, str>> { unreachable!() }
    #[step]
    async fn load() -> StepResult<Vec<&str>> { unreachable!() }
    #[step]
    async fn list(input: &Lockfile, ctx: &StepContext) -> StepResult<&[u8]> { unreachable!() }
    #[step]
    async fn undeclared(input: &Lockfile) -> StepResult<Cow<'a, str>> { unreachable!() }
    #[step]
    async fn owned(input: &Lockfile) -> StepResult<Cow<'static, str>> { unreachable!() }
    #[step(depends_on = [parse, fetch, load, list, owned])]
    async fn report(parse: &str, fetch: String, owned: Cow<'static, str>) -> StepResult<Report> { unreachable!() }
}

fn main() {}
