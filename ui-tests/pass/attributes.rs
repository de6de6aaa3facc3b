//! Attribute macros of others on steps, and the items that a flow has besides them.
#![deny(warnings)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Lockfile, Package};
// One is a slip away from `step`, and an attribute all the same.
use tracing::{instrument, instrument as steps};

pub struct Audit;

#[flow(input = Lockfile)]
#[expect(clippy::unused_self, reason = "attributes of the block stay")]
impl Audit {
    const LIMIT: usize = 2;

    #[step]
    #[instrument(skip_all, fields(plan = %input.plan))]
    async fn parse(input: &Lockfile) -> StepResult<Vec<Package>> {
        tracing::info!("reading");
        let name = Self::name(input);
        Ok(vec![Package { name }; Self::LIMIT])
    }

    #[instrument(err, skip(item))]
    #[step(map = parse)]
    async fn inspect(item: Package, ctx: &StepContext) -> anyhow::Result<String> {
        tokio::task::yield_now().await;
        anyhow::ensure!(ctx.attempt() > 0, "no attempt");
        Ok(item.name)
    }

    #[pgflow::step(depends_on = [inspect])]
    #[must_use = "it counts"]
    #[deprecated = "still a step"]
    async fn last(inspect: Vec<String>) -> StepResult<usize> {
        Ok(inspect.len())
    }

    fn name(input: &Lockfile) -> String {
        input.plan.clone()
    }

    #[steps(skip_all)]
    async fn helper(input: &Lockfile) -> usize {
        tokio::task::yield_now().await;
        Self::name(input).len()
    }

    fn method(&self) -> usize {
        Self::LIMIT
    }
}

#[tokio::test]
async fn a_step_stays_the_function_that_it_was() {
    let input = Lockfile {
        plan: "free".to_owned(),
    };
    let packages = Audit::parse(&input).await.expect("packages");
    assert_eq!(packages.len(), Audit.method());
    assert_eq!(Audit::helper(&input).await, 4);
    assert_eq!(Audit::DEFINITION.steps.len(), 3);
}
