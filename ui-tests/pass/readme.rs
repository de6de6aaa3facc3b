//! The flow of the documentation.
#![deny(warnings)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package, Report};
use serde::{Deserialize, Serialize};

pub struct AppState;

#[derive(Debug, thiserror::Error)]
#[error("not a lock file")]
pub struct ParseError;

#[derive(Serialize, Deserialize)]
pub struct Licences;

/// Audits the crates that a lock file pins.
pub struct CrateAudit;

#[flow(input = Lockfile, state = AppState, max_attempts = 3, base_delay = "5s", timeout = "30s", with_step_queues)]
impl CrateAudit {
    const LIMIT: usize = 10;

    /// Reads the lock file.
    #[step]
    async fn parse(input: &Lockfile) -> Result<Vec<Package>, ParseError> {
        if input.plan.is_empty() {
            return Err(ParseError);
        }
        let name = input.plan.clone();
        Ok(vec![Package { name }; Self::LIMIT])
    }

    #[step(map = parse, max_attempts = 5)]
    async fn inspect(item: Package, ctx: &StepContext) -> anyhow::Result<Inspection> {
        anyhow::ensure!(ctx.attempt() > 1, "too early");
        Ok(Inspection { name: item.name })
    }

    #[step(depends_on = [inspect], when_exhausted = "skip")]
    async fn licences(inspect: &[Inspection], state: &AppState) -> StepResult<Licences> {
        let _: &AppState = state;
        if inspect.is_empty() {
            Err("no package")?;
        }
        Ok(Licences)
    }

    #[step(depends_on = [parse, licences])]
    async fn report(
        #[from(parse)] packages: &[Package],
        licences: Option<&Licences>,
    ) -> StepResult<Report> {
        let _ = (packages.len(), licences.is_some());
        Ok(Report)
    }

    #[step(if = { plan: "premium" })]
    async fn notify(input: Lockfile) -> StepResult<()> {
        let _: String = input.plan;
        Ok(())
    }
}

#[test]
fn the_definition_is_valid() {
    let slugs: Vec<_> = Step::ALL.iter().map(|step| step.slug()).collect();
    assert_eq!(slugs, ["parse", "inspect", "licences", "report", "notify"]);
    assert_eq!(CrateAudit::DEFINITION.problems(), []);
    let routes = CrateAudit::DEFINITION.route_map().expect("valid");
    assert_eq!(routes[Step::Report.index()].queue, "crate_audit__report");
}

#[test]
fn the_output_has_the_leaves() {
    let _ = |output: CrateAuditOutput| -> (Report, Option<()>) { (output.report, output.notify) };
}

#[tokio::test]
async fn a_step_is_a_function() {
    let packages = [Package {
        name: "serde".to_owned(),
    }];
    CrateAudit::report(&packages, None).await.expect("a report");
}
