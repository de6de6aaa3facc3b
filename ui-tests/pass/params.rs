//! Every way to take a value, in a module that hides what generated code might lean on.
#![deny(warnings)]

use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

mod core {}
mod std {}
#[expect(dead_code, reason = "it is in the way, that is all")]
struct Some;
type Result<T> = ::std::result::Result<T, ::std::io::Error>;

#[derive(Serialize, Deserialize)]
pub struct Input {
    n: u32,
}

#[derive(Clone)]
pub struct Pool(u32);

pub struct Everything;

#[flow(input = Input, state = Pool)]
impl Everything {
    #[step]
    async fn text(input: &Input) -> Result<String> {
        Ok(input.n.to_string())
    }

    #[step]
    async fn list(_input: Input, state: Pool) -> StepResult<Vec<u32>> {
        Ok(vec![1, state.0])
    }

    #[step]
    async fn maybe(ctx: StepContext) -> StepResult<Option<i32>> {
        Ok(None.or(Option::Some(ctx.attempt())))
    }

    #[step(if = { n: 1, "odd-key": [1, -2.5, true, null, { a: "q\"uote" }] })]
    async fn absent(mut input: Input) -> StepResult<Option<String>> {
        input.n += 1;
        Ok((input.n == 0).then(String::new))
    }

    #[step(map = list)]
    async fn twice(
        item: u32,
        input: &Input,
        state: &Pool,
        ctx: &StepContext,
    ) -> StepResult<(u32, i32)> {
        Ok((item * 2 + input.n - state.0, ctx.task_index()))
    }

    #[step(map = twice)]
    async fn again(#[from(item)] (a, b): (u32, i32)) -> ::std::result::Result<i64, &'static str> {
        Ok(i64::from(a) + i64::from(b))
    }

    /// A map step may do without its element.
    #[step(map = again)]
    async fn count() -> StepResult<()> {
        Ok(())
    }

    #[step(depends_on = [text, list, maybe, absent])]
    async fn r#type(
        text: &str,
        list: &[u32],
        #[from(maybe)] m: Option<i32>,
        absent: Option<&Option<String>>,
    ) -> ::std::result::Result<String, String> {
        Ok(format!("{text} {list:?} {m:?} {absent:?}"))
    }

    #[step(depends_on = [again, r#type, absent, count])]
    async fn last(
        again: &Vec<i64>,
        r#type: String,
        absent: &Option<Option<String>>,
    ) -> anyhow::Result<String> {
        Ok(format!("{again:?} {type} {absent:?}", r#type = r#type))
    }
}

#[test]
fn only_steps_that_ask_get_the_flow_input() {
    let steps = Everything::DEFINITION.steps.iter();
    let asking: Vec<_> = steps
        .filter(|step| step.needs_flow_input)
        .map(|step| step.slug)
        .collect();
    assert_eq!(asking, ["text", "list", "absent", "twice"]);
    assert_eq!(Step::Type.slug(), "type");
}
