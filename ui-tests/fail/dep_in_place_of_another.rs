#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};

pub struct CrateAudit;

#[flow(input = Lockfile)]
impl CrateAudit {
    fn limit() -> usize { 3 }
    #[step]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step]
    async fn fetch(input: &Lockfile) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [zebra])]
    async fn of_none(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [limit])]
    async fn of_function(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [input])]
    async fn of_word(#[from(parse)] list: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [fetch, of_itself])]
    async fn of_itself(fetch: Report, _parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [fetch, fetch])]
    async fn of_another(fetch: Report, parse: &[Package]) -> StepResult<Report> { unreachable!() }
    #[step(depends_on = [Other::parse])]
    async fn of_outside(parse: &[Package]) -> StepResult<Report> { unreachable!() }
    // Each wrong name stands for one parameter: here is one more.
    #[step(depends_on = [zebra])]
    async fn of_two(parse: &[Package], fetch: Report) -> StepResult<Report> { unreachable!() }
}

fn main() {}
