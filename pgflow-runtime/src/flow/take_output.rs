//! The way from the output of a step to a parameter of another one, with a separate error text for
//! each type that does not fit.
//!
//! The texts name both steps. Generated code has a constant parameter for each, which rustc shows
//! by its name; their values are not used.

use super::slot::{FromSlot, Required, Skippable};

/// The type of the constant parameters.
pub type Name = bool;

/// Two traits for one sentence: `Or` is for a value that can also be borrowed as a `B`.
macro_rules! sentence {
    ($doc:literal $plain:ident $or:ident Required { $($text:tt)* }) => {
        sentence!(@ $doc $plain [] Required "expected `{Out}` or `&{Out}`" { $($text)* });
        sentence!(@ $doc $or [B] Required "expected `{Out}`, `&{Out}` or `{B}`" { $($text)* });
    };
    ($doc:literal $plain:ident $or:ident Skippable { $($text:tt)* }) => {
        sentence!(@ $doc $plain [] Skippable "expected `Option<{Out}>` or `Option<&{Out}>`" { $($text)* });
        sentence!(@ $doc $or [B] Skippable "expected `Option<{Out}>`, `Option<&{Out}>` or `Option<{B}>`" { $($text)* });
    };
    (@ $doc:literal $name:ident [$($b:ident)?] $slot:ident $label:tt { $($text:tt)* }) => {
        #[doc = $doc]
        #[diagnostic::on_unimplemented($($text)*, label = $label)]
        pub trait $name<'s, Out, $($b,)? const ME: Name, const SOURCE: Name>: FromSlot<'s, $slot<Out>> {}

        #[diagnostic::do_not_recommend]
        impl<'s, Out, $($b,)? P, const ME: Name, const SOURCE: Name> $name<'s, Out, $($b,)? ME, SOURCE> for P
        where
            P: FromSlot<'s, $slot<Out>>,
        {
        }
    };
}

sentence!("The types for the output of a step that can't be skipped." TakesOutput TakesOutputOr Required {
    message = "step `{ME}` takes `{SOURCE}` as `{Self}`, but step `{SOURCE}` returns `{Out}`"
});

sentence!("The types for all outputs of a map step." TakesOutputs TakesOutputsOr Required {
    message = "step `{ME}` takes `{SOURCE}` as `{Self}`, but step `{SOURCE}` returns `{Out}` (one per element)"
});

sentence!("The same where an `Option` is taken." TakesCertain TakesCertainOr Required {
    message = "step `{SOURCE}` can't be skipped, but step `{ME}` takes its output as `{Self}`",
    note = "an `Option` is for dependencies with `if`, `if_not` or `when_exhausted = \"skip\"`; `{SOURCE}` has none of them"
});

sentence!("The same where dependents are skipped with the step." TakesCascading TakesCascadingOr Required {
    message = "step `{SOURCE}` is always present here, but step `{ME}` takes its output as `{Self}`",
    note = "when `{SOURCE}` is skipped, `{ME}` is skipped with it (\"skip-cascade\"), so the output is always there when `{ME}` runs"
});

sentence!("The types for the output of a step with a condition." TakesConditional TakesConditionalOr Skippable {
    message = "step `{ME}` takes `{SOURCE}` as `{Self}`, but step `{SOURCE}` returns `{Out}` and may be skipped",
    note = "`{SOURCE}` is skipped when its condition is not met, and `{ME}` runs without its output then: the output is taken in an `Option`"
});

sentence!("The types for the output of a step that is skipped when it fails." TakesFallible TakesFallibleOr Skippable {
    message = "step `{ME}` takes `{SOURCE}` as `{Self}`, but step `{SOURCE}` returns `{Out}` and may be skipped",
    note = "`{SOURCE}` is skipped when its attempts are exhausted, and `{ME}` runs without its output then: the output is taken in an `Option`"
});

sentence!("The types for an element of a list." TakesElement TakesElementOr Required {
    message = "step `{ME}` maps over `{SOURCE}`, whose elements are `{Out}`, but its `item` is `{Self}`"
});

sentence!("The types for an element of the flow's input." TakesInputElement TakesInputElementOr Required {
    message = "step `{ME}` maps over the flow's input, whose elements are `{Out}`, but its `item` is `{Self}`"
});

sentence!("The types for the outputs of a map step some of whose elements may have failed." TakesTolerantOutputs TakesTolerantOutputsOr Required {
    message = "step `{ME}` takes `{SOURCE}` as `{Self}`, but step `{SOURCE}` returns `{Out}`",
    note = "`{SOURCE}` has `on_element_failure = \"null\"`: an element whose attempts are exhausted is `None`, each other one `Some`"
});

sentence!("The same where the step has a condition." TakesTolerantConditional TakesTolerantConditionalOr Skippable {
    message = "step `{ME}` takes `{SOURCE}` as `{Self}`, but step `{SOURCE}` returns `{Out}` and may be skipped",
    note = "`{SOURCE}` has `on_element_failure = \"null\"`: an element whose attempts are exhausted is `None`, each other one `Some`",
    note = "`{SOURCE}` is skipped when its condition is not met, and `{ME}` runs without its output then: the output is taken in an `Option`"
});

sentence!("The same where the step is skipped when every element fails." TakesTolerantFallible TakesTolerantFallibleOr Skippable {
    message = "step `{ME}` takes `{SOURCE}` as `{Self}`, but step `{SOURCE}` returns `{Out}` and may be skipped",
    note = "`{SOURCE}` has `on_element_failure = \"null\"`: an element whose attempts are exhausted is `None`, each other one `Some`",
    note = "`{SOURCE}` is skipped when every element fails, and `{ME}` runs without its output then: the output is taken in an `Option`"
});

sentence!("The types for an element that may have failed." TakesTolerantElement TakesTolerantElementOr Required {
    message = "step `{ME}` maps over `{SOURCE}`, whose elements are `{Out}`, but its `item` is `{Self}`",
    note = "`{SOURCE}` has `on_element_failure = \"null\"`: an element whose attempts are exhausted is `None`, each other one `Some`"
});
