//! The definition as a literal.

use pgflow_definition::{Condition, FlowDefinition, FlowOptions, StepDefinition, StepOptions};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};

use crate::model::Flow;

pub(super) fn literal(flow: &Flow<'_>) -> TokenStream {
    flow.with_definition(|definition| {
        let FlowDefinition {
            slug,
            queue_mode,
            options,
            steps,
        } = definition;
        let queue_mode = variant(&queue_mode);
        let options = flow_options(options);
        let steps = steps.iter().map(step);
        quote! {
            __p::FlowDefinition {
                slug: #slug,
                queue_mode: __p::QueueMode::#queue_mode,
                options: #options,
                steps: &[#(#steps),*],
            }
        }
    })
}

fn step(definition: &StepDefinition<'_>) -> TokenStream {
    let StepDefinition {
        slug,
        kind,
        depends_on,
        options,
        condition,
        when_unmet,
        when_exhausted,
        needs_flow_input,
    } = definition;
    let (kind, when_unmet, when_exhausted) =
        (variant(kind), variant(when_unmet), variant(when_exhausted));
    let options = step_options(*options);
    let Condition {
        required,
        forbidden,
    } = *condition;
    let (required, forbidden) = (option(required), option(forbidden));
    quote! {
        __p::StepDefinition {
            slug: #slug,
            kind: __p::StepKind::#kind,
            depends_on: &[#(#depends_on),*],
            options: #options,
            condition: __p::Condition { required: #required, forbidden: #forbidden },
            when_unmet: __p::SkipMode::#when_unmet,
            when_exhausted: __p::SkipMode::#when_exhausted,
            needs_flow_input: #needs_flow_input,
        }
    }
}

fn flow_options(options: FlowOptions) -> TokenStream {
    let max_attempts = option(options.max_attempts);
    let base_delay = option(options.base_delay);
    let timeout = option(options.timeout);
    quote!(__p::FlowOptions { max_attempts: #max_attempts, base_delay: #base_delay, timeout: #timeout })
}

fn step_options(options: StepOptions) -> TokenStream {
    let max_attempts = option(options.max_attempts);
    let base_delay = option(options.base_delay);
    let timeout = option(options.timeout);
    let start_delay = option(options.start_delay);
    quote! {
        __p::StepOptions {
            max_attempts: #max_attempts,
            base_delay: #base_delay,
            timeout: #timeout,
            start_delay: #start_delay,
        }
    }
}

fn option(value: Option<impl ToTokens>) -> TokenStream {
    value.map_or_else(|| quote!(__p::None), |value| quote!(__p::Some(#value)))
}

/// The name of a variant without data.
fn variant(value: &impl std::fmt::Debug) -> Ident {
    format_ident!("{value:?}")
}
