//! The types of outputs and parameters, exactly: for each way to be skipped, and for each way to
//! take a value.
#![deny(warnings)]
#![allow(
    clippy::ptr_arg,
    reason = "the longer forms are allowed, so they are here"
)]

use pgflow::prelude::*;

/// A struct with one field, taken apart: compiles only if the field's type is `T`, and has no other
/// field beside those named.
macro_rules! assert_fields {
    ($output:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        const _: fn($output) = |output| {
            let $output { $($field),* } = output;
            $(let _: Exactly<$ty> = Exactly::of($field);)*
        };
    };
}

/// Keeps `_: T = value` from coercing.
struct Exactly<T>(std::marker::PhantomData<T>);

impl<T> Exactly<T> {
    fn of(_: T) -> Self {
        Self(std::marker::PhantomData)
    }
}

/// The leaves that are `Option`, when only the leaf itself can be skipped.
mod leaves {
    use super::*;

    pub struct Leaves;

    #[flow(input = u32)]
    impl Leaves {
        #[step]
        async fn required() -> StepResult<u8> {
            Ok(1)
        }

        #[step(when_exhausted = "fail")]
        async fn required_by_name() -> StepResult<u8> {
            Ok(1)
        }

        /// Has an output that is itself an `Option`.
        #[step]
        async fn required_option() -> StepResult<Option<u8>> {
            Ok(None)
        }

        #[step(when_exhausted = "skip")]
        async fn exhausted_skip() -> StepResult<u8> {
            Ok(1)
        }

        #[step(when_exhausted = "skip-cascade")]
        async fn exhausted_cascade() -> StepResult<u8> {
            Ok(1)
        }

        #[step(when_exhausted = "skip")]
        async fn exhausted_option() -> StepResult<Option<u8>> {
            Ok(None)
        }

        #[step(if = { n: 1 })]
        async fn unmet_default() -> StepResult<u8> {
            Ok(1)
        }

        #[step(if_not = { n: 1 }, when_unmet = "skip")]
        async fn unmet_skip() -> StepResult<u8> {
            Ok(1)
        }

        #[step(if = { n: 1 }, when_unmet = "skip-cascade")]
        async fn unmet_cascade() -> StepResult<u8> {
            Ok(1)
        }

        /// A condition that is not met fails the run, so a completed one has the output.
        #[step(if = { n: 1 }, when_unmet = "fail")]
        async fn unmet_fail() -> StepResult<u8> {
            Ok(1)
        }

        #[step(if = { n: 1 }, when_unmet = "fail", when_exhausted = "skip")]
        async fn unmet_fail_exhausted_skip() -> StepResult<u8> {
            Ok(1)
        }
    }

    assert_fields!(LeavesOutput {
        required: u8,
        required_by_name: u8,
        required_option: Option<u8>,
        exhausted_skip: Option<u8>,
        exhausted_cascade: Option<u8>,
        exhausted_option: Option<Option<u8>>,
        unmet_default: Option<u8>,
        unmet_skip: Option<u8>,
        unmet_cascade: Option<u8>,
        unmet_fail: u8,
        unmet_fail_exhausted_skip: Option<u8>,
    });
}

/// Leaves below steps that can be skipped.
mod ancestors {
    use super::*;

    pub struct Ancestors;

    #[flow(input = Vec<u32>)]
    impl Ancestors {
        #[step(when_exhausted = "skip")]
        async fn skip() -> StepResult<Vec<u8>> {
            Ok(vec![1])
        }

        #[step(when_exhausted = "skip-cascade")]
        async fn cascade() -> StepResult<Vec<u8>> {
            Ok(vec![1])
        }

        #[step(depends_on = [cascade])]
        async fn between(cascade: Vec<u8>) -> StepResult<Vec<u8>> {
            Ok(cascade)
        }

        #[step(depends_on = [skip])]
        async fn below_skip(skip: Option<Vec<u8>>) -> StepResult<usize> {
            Ok(skip.map_or(0, |list| list.len()))
        }

        #[step(depends_on = [cascade])]
        async fn below_cascade(cascade: Vec<u8>) -> StepResult<usize> {
            Ok(cascade.len())
        }

        #[step(depends_on = [between])]
        async fn two_below_cascade(between: &[u8]) -> StepResult<usize> {
            Ok(between.len())
        }

        #[step(depends_on = [skip, cascade])]
        async fn below_both(skip: Option<&[u8]>, cascade: &[u8]) -> StepResult<usize> {
            Ok(skip.map_or(0, <[u8]>::len) + cascade.len())
        }

        #[step(map = input)]
        async fn map_of_input(item: u32) -> StepResult<u8> {
            Ok(u8::try_from(item)?)
        }

        #[step(map = input, when_exhausted = "skip")]
        async fn map_of_input_skip(item: u32) -> StepResult<u8> {
            Ok(u8::try_from(item)?)
        }

        /// A list that was skipped has no elements.
        #[step(map = skip)]
        async fn map_of_skip(item: u8) -> StepResult<u8> {
            Ok(item)
        }

        #[step(map = cascade)]
        async fn map_of_cascade(item: u8) -> StepResult<u8> {
            Ok(item)
        }
    }

    assert_fields!(AncestorsOutput {
        below_skip: usize,
        below_cascade: Option<usize>,
        two_below_cascade: Option<usize>,
        below_both: Option<usize>,
        map_of_input: Vec<u8>,
        map_of_input_skip: Option<Vec<u8>>,
        map_of_skip: Vec<u8>,
        map_of_cascade: Option<Vec<u8>>,
    });
}

/// Every form of a parameter, for every kind of value.
mod forms {
    use super::*;

    pub struct Forms;

    #[derive(Clone)]
    pub struct Pool;

    #[flow(input = Vec<String>, state = Pool)]
    impl Forms {
        #[step]
        async fn input_value(input: Vec<String>) -> StepResult<u8> {
            Ok(u8::from(input.is_empty()))
        }

        #[step]
        async fn input_ref(input: &Vec<String>) -> StepResult<u8> {
            Ok(u8::from(input.is_empty()))
        }

        #[step]
        async fn input_slice(input: &[String]) -> StepResult<u8> {
            Ok(u8::from(input.is_empty()))
        }

        #[step(map = input)]
        async fn item_value(item: String) -> StepResult<String> {
            Ok(item)
        }

        #[step(map = input)]
        async fn item_ref(item: &String) -> StepResult<String> {
            Ok(item.clone())
        }

        #[step(map = input)]
        async fn item_str(item: &str) -> StepResult<String> {
            Ok(item.to_owned())
        }

        #[step(map = input)]
        async fn no_item() -> StepResult<String> {
            Ok(String::new())
        }

        #[step]
        async fn text() -> StepResult<String> {
            Ok(String::new())
        }

        #[step]
        async fn list() -> StepResult<Vec<u8>> {
            Ok(Vec::new())
        }

        #[step]
        async fn maybe() -> StepResult<Option<u8>> {
            Ok(None)
        }

        #[step(when_exhausted = "skip")]
        async fn skip_text() -> StepResult<String> {
            Ok(String::new())
        }

        #[step(when_exhausted = "skip")]
        async fn skip_list() -> StepResult<Vec<u8>> {
            Ok(Vec::new())
        }

        #[step(when_exhausted = "skip")]
        async fn skip_maybe() -> StepResult<Option<u8>> {
            Ok(None)
        }

        #[step(map = input, when_exhausted = "skip")]
        async fn skip_each(item: String) -> StepResult<String> {
            Ok(item)
        }

        #[step(depends_on = [text, list, maybe, item_value])]
        async fn values(
            text: String,
            list: Vec<u8>,
            maybe: Option<u8>,
            item_value: Vec<String>,
        ) -> StepResult<usize> {
            Ok(text.len() + list.len() + usize::from(maybe.is_some()) + item_value.len())
        }

        #[step(depends_on = [text, list, maybe, item_value])]
        async fn references(
            text: &String,
            list: &Vec<u8>,
            maybe: &Option<u8>,
            item_value: &Vec<String>,
        ) -> StepResult<usize> {
            Ok(text.len() + list.len() + usize::from(maybe.is_some()) + item_value.len())
        }

        #[step(depends_on = [text, list, item_value])]
        async fn slices(text: &str, list: &[u8], item_value: &[String]) -> StepResult<usize> {
            Ok(text.len() + list.len() + item_value.len())
        }

        #[step(depends_on = [skip_text, skip_list, skip_maybe, skip_each])]
        async fn optional_values(
            skip_text: Option<String>,
            skip_list: Option<Vec<u8>>,
            skip_maybe: Option<Option<u8>>,
            skip_each: Option<Vec<String>>,
        ) -> StepResult<bool> {
            let some = skip_text.is_some() && skip_list.is_some() && skip_each.is_some();
            Ok(some && skip_maybe.flatten().is_some())
        }

        #[step(depends_on = [skip_text, skip_list, skip_maybe, skip_each])]
        async fn optional_references(
            skip_text: Option<&String>,
            skip_list: Option<&Vec<u8>>,
            skip_maybe: Option<&Option<u8>>,
            skip_each: Option<&Vec<String>>,
        ) -> StepResult<bool> {
            let some = skip_text.is_some() && skip_list.is_some() && skip_each.is_some();
            Ok(some && skip_maybe.is_some())
        }

        #[step(depends_on = [skip_text, skip_list, skip_each])]
        async fn optional_slices(
            skip_text: Option<&str>,
            skip_list: Option<&[u8]>,
            skip_each: Option<&[String]>,
        ) -> StepResult<bool> {
            Ok(skip_text.is_some() && skip_list.is_some() && skip_each.is_some())
        }

        #[step(depends_on = [skip_text, skip_list, skip_maybe])]
        async fn references_to_optional(
            skip_text: &Option<String>,
            skip_list: &Option<Vec<u8>>,
            skip_maybe: &Option<Option<u8>>,
        ) -> StepResult<bool> {
            Ok(skip_text.is_some() && skip_list.is_some() && skip_maybe.is_some())
        }

        #[step(depends_on = [text])]
        async fn order_only() -> StepResult<()> {
            Ok(())
        }

        #[step]
        async fn state_and_ctx(state: &Pool, ctx: &StepContext) -> StepResult<i32> {
            let _: &Pool = state;
            Ok(ctx.attempt())
        }

        #[step]
        async fn state_and_ctx_values(state: Pool, ctx: StepContext) -> StepResult<i32> {
            let _: Pool = state;
            Ok(ctx.attempt())
        }
    }
}

/// An input of text, and lists that only the type checker sees to be lists.
mod other_inputs {
    use super::*;

    pub struct Text;

    #[flow(input = String)]
    impl Text {
        #[step]
        async fn value(input: String) -> StepResult<usize> {
            Ok(input.len())
        }

        #[step]
        async fn reference(input: &String) -> StepResult<usize> {
            Ok(input.len())
        }

        #[step]
        async fn text(input: &str) -> StepResult<usize> {
            Ok(input.len())
        }
    }

    pub type Numbers = std::collections::VecDeque<u16>;

    pub struct Hidden;

    #[flow(input = Numbers, step_enum = HiddenStep)]
    impl Hidden {
        #[step(map = input)]
        async fn of_input(item: u16) -> StepResult<[u8; 2]> {
            Ok(item.to_be_bytes())
        }

        #[step]
        async fn list(input: Numbers) -> StepResult<Numbers> {
            Ok(input)
        }

        #[step(map = list)]
        async fn of_output(item: &u16) -> StepResult<u16> {
            Ok(*item)
        }

        #[step(depends_on = [list])]
        async fn whole(list: &Numbers) -> StepResult<usize> {
            Ok(list.len())
        }
    }

    assert_fields!(HiddenOutput {
        of_input: Vec<[u8; 2]>,
        of_output: Vec<u16>,
        whole: usize,
    });
}

#[test]
fn the_definitions_are_valid() {
    for definition in [
        leaves::Leaves::DEFINITION,
        ancestors::Ancestors::DEFINITION,
        forms::Forms::DEFINITION,
        other_inputs::Text::DEFINITION,
        other_inputs::Hidden::DEFINITION,
    ] {
        assert_eq!(definition.problems(), [], "{}", definition.slug);
    }
}
