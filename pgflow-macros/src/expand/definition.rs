//! The definition, as calls that are named by the arguments of the attributes.
//!
//! Each name is placed at the argument, so that editors show what the argument does.

use pgflow_definition::{Condition, SkipMode, StepDefinition, StepKind, StepOptions};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;

use crate::{
    model::{Flow, Step},
    parse::Keys,
};

/// The constant that holds the steps in the order of the definition.
pub(super) fn steps(flow: &Flow<'_>) -> TokenStream {
    let steps: Vec<TokenStream> = flow.with_definition(|definition| {
        let written = flow.order.iter().map(|&index| &flow.steps[index]);
        let steps = definition.steps.iter().zip(written);
        steps
            .map(|(step, written)| self::step(step, written))
            .collect()
    });
    quote!(const __STEPS: &[__p::StepDefinition<'static>] = &[#(#steps),*];)
}

/// The definition without its steps.
pub(super) fn of_flow(flow: &Flow<'_>) -> TokenStream {
    flow.with_definition(|definition| {
        let slug = definition.slug;
        let args = flow.args;
        let mut calls = Calls::of(&args.keys, quote!(__p::flow(#slug)));
        for key in [
            "input",
            "state",
            "step_enum",
            "output",
            "output_derive",
            "vis",
        ] {
            calls.mention(key);
        }
        if args.slug.is_some() {
            calls.call("slug", slug);
        }
        if args.with_step_queues {
            calls.call("with_step_queues", TokenStream::new());
        }
        let options = definition.options;
        calls.call_with("max_attempts", options.max_attempts);
        calls.call_with("base_delay", options.base_delay);
        calls.call_with("max_delay", options.max_delay);
        calls.call_with("give_up_after", options.give_up_after);
        calls.call_with("timeout", options.timeout);
        let flow = calls.tokens;
        quote!(#flow.steps(__STEPS))
    })
}

fn step(definition: &StepDefinition<'_>, step: &Step<'_>) -> TokenStream {
    let StepDefinition {
        slug,
        kind,
        depends_on,
        options,
        condition,
        when_unmet,
        when_exhausted,
        on_element_failure,
        runs_on,
        needs_flow_input,
    } = *definition;
    let mut calls = Calls::of(&step.args.keys, quote!(__p::step(#slug)));
    if step.args.slug.is_some() {
        calls.call("slug", slug);
    }
    match kind {
        StepKind::Map => calls.call("map", quote!(&[#(#depends_on),*])),
        StepKind::Single if !depends_on.is_empty() => {
            calls.call("depends_on", quote!(&[#(#depends_on),*]));
        }
        StepKind::Single => {}
    }
    let StepOptions {
        max_attempts,
        base_delay,
        max_delay,
        give_up_after,
        timeout,
        start_delay,
    } = options;
    calls.call_with("max_attempts", max_attempts);
    calls.call_with("base_delay", base_delay);
    calls.call_with("max_delay", max_delay);
    calls.call_with("give_up_after", give_up_after);
    calls.call_with("timeout", timeout);
    calls.call_with("start_delay", start_delay);
    let Condition {
        required,
        forbidden,
    } = condition;
    calls.call_with("if", required);
    calls.call_with("if_not", forbidden);
    calls.call_with("when_unmet", step.args.when_unmet.map(|_| mode(when_unmet)));
    let exhausted = step.args.when_exhausted.map(|_| mode(when_exhausted));
    calls.call_with("when_exhausted", exhausted);
    let element = (step.args.on_element_failure).map(|_| {
        let mode = format_ident!("{on_element_failure:?}");
        quote!(__p::ElementFailure::#mode)
    });
    calls.call_with("on_element_failure", element);
    let runs_on = runs_on.map(|end| format_ident!("{end:?}"));
    calls.call_with("on", runs_on.map(|end| quote!(__p::RunsOn::#end)));
    let (step, input) = (
        calls.tokens,
        needs_flow_input.then(|| quote!(.takes_input())),
    );
    quote!(#step #input.done())
}

/// A chain of calls.
struct Calls<'m> {
    keys: &'m Keys,
    tokens: TokenStream,
}

impl<'m> Calls<'m> {
    fn of(keys: &'m Keys, tokens: TokenStream) -> Self {
        Self { keys, tokens }
    }

    fn call(&mut self, key: &str, arguments: impl ToTokens) {
        let at = (self.keys.find(key)).map_or_else(Span::call_site, |key| key.unraw().span());
        let method = if key == "if" {
            Ident::new_raw(key, at)
        } else {
            Ident::new(key, at)
        };
        self.tokens.extend(quote!(.#method(#arguments)));
    }

    fn call_with(&mut self, key: &str, argument: Option<impl ToTokens>) {
        if let Some(argument) = argument {
            self.call(key, argument);
        }
    }

    /// Calls the method of an argument that does not change the definition.
    fn mention(&mut self, key: &str) {
        if self.keys.find(key).is_some() {
            self.call(key, TokenStream::new());
        }
    }
}

fn mode(mode: SkipMode) -> TokenStream {
    let mode = format_ident!("{mode:?}");
    quote!(__p::SkipMode::#mode)
}
