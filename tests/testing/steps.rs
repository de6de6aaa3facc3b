//! Steps are plain functions: each is called exactly as it is written, without a database.

use std::time::Duration;

use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

/// Neither cloned nor printed.
#[derive(Serialize, Deserialize)]
struct Package {
    name: String,
}

struct Index {
    prefix: String,
}

#[derive(Debug, PartialEq)]
struct Empty;

impl std::fmt::Display for Empty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no packages")
    }
}

impl std::error::Error for Empty {}

struct Audit;

#[flow(input = String, state = Index)]
impl Audit {
    #[step]
    async fn parse(input: &str, state: &Index) -> Result<Vec<Package>, Empty> {
        let name = |word: &str| format!("{}{word}", state.prefix);
        let packages: Vec<Package> = input
            .split_whitespace()
            .map(|word| Package { name: name(word) })
            .collect();
        if packages.is_empty() {
            return Err(Empty);
        }
        Ok(packages)
    }

    #[step(map = parse, when_exhausted = "skip")]
    async fn inspect(item: &Package, ctx: &StepContext) -> StepResult<String> {
        tokio::select! {
            () = ctx.cancelled() => Err("stopped half way")?,
            () = tokio::task::yield_now() => {}
        }
        match ctx.attempt() {
            1 => Err(StepError::retry_after(Duration::from_secs(30), "later")),
            n if n == ctx.max_attempts() => Ok(format!("{} by guess", item.name)),
            _ => Ok(format!("{} {}", item.name, ctx.idempotency_key())),
        }
    }

    #[step(depends_on = [parse, inspect])]
    async fn report(
        #[from(parse)] packages: &[Package],
        inspect: Option<&[String]>,
        ctx: StepContext,
    ) -> anyhow::Result<String> {
        let input: String = ctx.flow_input().await?;
        Ok(format!("{} of {input:?}: {inspect:?}", packages.len()))
    }
}

fn index() -> Index {
    Index {
        prefix: "rs-".to_owned(),
    }
}

#[tokio::test]
async fn a_step_takes_what_its_parameters_say_and_returns_its_own_error() {
    let packages = Audit::parse("a b", &index()).await.unwrap();
    assert_eq!(packages[1].name, "rs-b");
    assert_eq!(Audit::parse(" ", &index()).await.err(), Some(Empty));
}

#[tokio::test]
async fn a_context_is_made_for_the_occasion() {
    let item = &Audit::parse("a", &index()).await.unwrap()[0];
    let first = StepContext::for_test().build();
    let error = Audit::inspect(item, &first).await.unwrap_err();
    assert_eq!(error.retry_delay(), Some(Duration::from_secs(30)));

    let second = StepContext::for_test().attempt(2).task_index(3).build();
    assert_eq!(
        Audit::inspect(item, &second).await.unwrap(),
        "rs-a 00000000-0000-0000-0000-000000000000:test:3"
    );
    let last = StepContext::for_test().attempt(5).max_attempts(5).build();
    assert_eq!(Audit::inspect(item, &last).await.unwrap(), "rs-a by guess");
}

#[tokio::test]
async fn a_step_is_cancelled_by_the_token() {
    let item = &Audit::parse("a", &index()).await.unwrap()[0];
    let ctx = StepContext::for_test().attempt(2).build();
    ctx.cancellation_token().cancel();
    let error = Audit::inspect(item, &ctx).await.unwrap_err();
    assert_eq!(error.message(), "stopped half way");
}

#[tokio::test]
async fn dependencies_and_the_input_are_values_of_the_test() {
    let packages = Audit::parse("a", &index()).await.unwrap();
    let ctx = StepContext::for_test().flow_input(&"a").build();
    let text = Audit::report(&packages, None, ctx).await.unwrap();
    assert_eq!(text, r#"1 of "a": None"#);
}
