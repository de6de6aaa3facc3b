//! Names in the database, and names that look like those of generated code.
#![deny(warnings)]

use pgflow::prelude::*;

/// The facade under another name.
mod reexport {
    pub(super) mod workflows {
        pub(in super::super) use pgflow::*;
    }
}

pub struct HTTPFetchV2;

#[flow(input = u32, crate = reexport::workflows, step_enum = FetchStep)]
impl HTTPFetchV2 {
    #[step(slug = "fetch_v1")]
    async fn fetch(input: u32) -> StepResult<Vec<u32>> {
        Ok(vec![input])
    }

    #[step(map = fetch)]
    async fn list_fetch(item: u32) -> StepResult<u32> {
        Ok(item)
    }

    #[step(depends_on = [fetch, list_fetch], if = { fetch: [1] }, slug = "lastOne")]
    async fn last(fetch: &[u32]) -> StepResult<usize> {
        Ok(fetch.len())
    }
}

pub struct Ambiguous;

#[flow(input = u32, slug = "Ambiguous_names")]
impl Ambiguous {
    #[step]
    async fn a(input: u32) -> StepResult<u32> {
        Ok(input)
    }

    #[step]
    async fn b_takes_a() -> StepResult<u32> {
        Ok(1)
    }

    #[step(depends_on = [a])]
    async fn c_takes_b(a: u32) -> StepResult<u32> {
        Ok(a)
    }

    #[step(depends_on = [b_takes_a])]
    async fn c(b_takes_a: u32) -> StepResult<u32> {
        Ok(b_takes_a)
    }

    #[step(depends_on = [c, c_takes_b])]
    async fn codec_of_a(c: u32, c_takes_b: u32) -> StepResult<u32> {
        Ok(c + c_takes_b)
    }

    #[step(depends_on = [codec_of_a])]
    async fn task(codec_of_a: u32) -> StepResult<u32> {
        Ok(codec_of_a)
    }
}

/// A flow that is its own state.
#[derive(Clone)]
pub struct Itself;

#[flow(input = [u8; Self::SIZE], state = Self, step_enum = ItselfStep)]
impl Itself {
    const SIZE: usize = 2;

    #[step]
    async fn first(input: [u8; Self::SIZE], state: &Self) -> StepResult<[u8; Self::SIZE]> {
        let _: &Itself = state;
        Ok(input)
    }

    #[step(map = first)]
    async fn second(item: u8, state: Self) -> StepResult<u8> {
        let _: Itself = state;
        Ok(item)
    }
}

#[test]
fn the_database_knows_slugs() {
    let definition = HTTPFetchV2::DEFINITION;
    assert_eq!(definition.slug, "http_fetch_v2");
    let slugs: Vec<_> = definition.steps.iter().map(|step| step.slug).collect();
    assert_eq!(slugs, ["fetch_v1", "list_fetch", "lastOne"]);
    let last = definition.steps[FetchStep::Last.index()];
    assert_eq!(last.depends_on, ["fetch_v1", "list_fetch"]);
    assert_eq!(last.condition.required, Some(r#"{"fetch_v1":[1]}"#));
    assert_eq!(FetchStep::Fetch.slug(), "fetch_v1");
    assert_eq!(Ambiguous::DEFINITION.slug, "Ambiguous_names");
    assert_eq!(Ambiguous::DEFINITION.default_queue(), "ambiguous_names");
}

#[test]
fn the_order_is_that_of_the_definition() {
    let indexes: Vec<_> = Step::ALL.iter().map(|step| step.index()).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 4, 5]);
    for step in Step::ALL {
        assert_eq!(Ambiguous::DEFINITION.steps[step.index()].slug, step.slug());
    }
}
