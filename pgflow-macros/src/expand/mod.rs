//! The code that is written.
//!
//! Besides the user's `impl` there are two types, the enum of steps and the output struct, and a `const _` that hides all else. In
//! it stand, per step, a codec for its output, a check for each parameter and the function that the worker calls.
//!
//! Spans decide where rustc shows an error and what editors find at a name. rustc takes the place of an expression from
//! its first and last token; editors look at identifiers. So the punctuation around a checked expression carries the place of
//! the user's token, and no identifier of ours does; see [`span`].

mod codec;
mod cycle;
mod definition;
mod element;
mod item;
mod mentions;
mod output;
mod runner;
mod span;
mod step_enum;
mod takes;

#[cfg(test)]
mod tests;

pub(crate) use item::user_item;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use crate::{
    check::Cycle,
    model::{Flow, Step, types::ends},
};

/// All that stands beside the user's `impl`.
pub(crate) fn generated(flow: &Flow<'_>, cycles: &[Cycle]) -> TokenStream {
    let step_enum = step_enum::item(flow);
    let output = output::item(flow);
    let cycles = cycles.iter().map(|cycle| cycle::evaluation(flow, cycle));
    let krate = &flow.krate;
    let mentions = mentions::function(flow);
    let input_codecs = codec::of_input(flow);
    let steps = flow.emitted().map(|(index, step)| {
        let codecs = codec::of_step(flow, index, step);
        let takes = takes::checks(flow, step);
        let runner = runner::function(flow, step);
        quote!(#codecs #takes #runner)
    });
    let step_id = step_enum::step_id(flow);
    let implementation = implementation(flow);
    quote! {
        #step_enum
        #output
        #[allow(
            clippy::all, clippy::pedantic, clippy::nursery,
            dead_code, deprecated, non_camel_case_types, non_snake_case, unused,
        )]
        const _: () = {
            use #krate::__private as __p;
            struct __Takes;
            #mentions
            #(#cycles)*
            #input_codecs
            #(#steps)*
            #step_id
            #implementation
        };
    }
}

/// `impl Flow`.
fn implementation(flow: &Flow<'_>) -> TokenStream {
    let self_ty = &flow.self_ty;
    let input = flow
        .input
        .as_ref()
        .map_or_else(|| quote!(()), ToTokens::to_token_stream);
    // A type that may not be used here, such as a private one, is then shown where it was named.
    let (at_input, _) = ends(&input);
    let input = quote_spanned!(at_input=> type Input = #input;);
    let state = state_type(flow);
    let (step_enum, output) = (step_enum::path(flow), &flow.output);
    let queues = if flow.args.with_step_queues {
        quote!(__p::QueuePerStep)
    } else {
        quote!(__p::OneQueue)
    };
    let definition = definition::literal(flow);
    let handlers = flow.emitted().map(|(_, step)| runner::name(step));
    let fields = output::fields(flow);
    quote! {
        #[automatically_derived]
        impl __p::Flow for #self_ty {
            #input
            type Output = #output;
            type State = #state;
            type Step = #step_enum;
            type Queues = #queues;
            const DEFINITION: &'static __p::FlowDefinition<'static> = &#definition;
            const HANDLERS: &'static [__p::Handler<#state>] = &[#(#handlers),*];
            fn __output(__outputs: &__p::Outputs<'_>) -> __p::Result<#output, __p::DecodeError> {
                __p::Result::Ok(#output { #(#fields)* })
            }
        }
    }
}

fn state_type(flow: &Flow<'_>) -> TokenStream {
    flow.state
        .as_ref()
        .map_or_else(|| quote!(()), ToTokens::to_token_stream)
}

/// A name made of a prefix of ours and a step's name. The prefixes are distinct, so two of these never are the same.
fn name_for(prefix: &str, step: &Step<'_>) -> Ident {
    format_ident!("{prefix}{}", step.name)
}
