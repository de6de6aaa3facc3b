//! The code that is written.
//!
//! Besides the user's `impl` there are two types, the enum of steps and the output struct, and a
//! `const _` that hides all else. In it stand, per step, a codec for its output, a check for each
//! parameter and the function that the worker calls.
//!
//! Spans decide where rustc shows an error and what editors find at a name. rustc takes the place
//! of an expression from its first and last token; editors look at identifiers. So the punctuation
//! around a checked expression carries the place of the user's token, and no identifier of ours
//! does; see [`span`].

mod argument;
mod codec;
mod definition;
mod element;
mod item;
mod mentions;
mod output;
mod runner;
mod span;
mod step_enum;
mod step_names;
mod takes;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use item::user_item;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Meta};

use crate::model::{Flow, Step, types::ends};

/// All that stands beside the user's `impl`.
pub(crate) fn generated(flow: &Flow<'_>) -> TokenStream {
    let krate = &flow.krate;
    let (step_enum, step_id) = (step_enum::item(flow), step_enum::step_id(flow));
    let steps = definition::steps(flow);
    if flow.is_generic {
        // All else would need the parameters.
        return quote! {
            #step_enum
            const _: () = {
                use #krate::__private as __p;
                #steps
                #step_id
            };
        };
    }
    let output = output::item(flow);
    let debug = output::debug(flow);
    let mentions = mentions::function(flow);
    let values = flow.emitted().map(|(_, step)| value::of_step(step));
    let codecs = flow
        .emitted()
        .map(|(index, step)| codec::item(flow, index, step));
    let takes = takes::functions(flow);
    let handlers = runner::items(flow);
    let implementation = implementation(flow);
    // A deprecated step is still a step.
    let deprecated = (flow.steps.iter())
        .any(step_deprecated)
        .then(|| quote!(#[allow(deprecated)]));
    quote! {
        #step_enum
        #output
        #deprecated
        const _: () = {
            use #krate::__private as __p;
            // Traits whose functions are called where those of a type don't apply.
            use __p::{Hidden as _, Unshared as _, Unstored as _};
            #mentions
            #(#values)*
            #(#codecs)*
            #takes
            #handlers
            #steps
            #step_id
            #debug
            #implementation
            // A step is in use, whether or not the flow is.
            let _ = (&__HANDLERS, __mentions);
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
    let input = associated_type("Input", &input);
    let state = state_type(flow);
    let state_item = associated_type("State", &state);
    let output = &flow.output;
    let (output_item, step_item) = (
        generated_type("Output", flow, &output.to_token_stream()),
        generated_type("Step", flow, &step_enum::path(flow)),
    );
    let queues = if flow.args.with_step_queues {
        quote!(__p::QueuePerStep)
    } else {
        quote!(__p::OneQueue)
    };
    let definition = definition::of_flow(flow);
    let fields = output::fields(flow);
    quote! {
        #[automatically_derived]
        impl __p::Flow for #self_ty {
            #input
            #output_item
            #state_item
            #step_item
            type Queues = #queues;
            const DEFINITION: &'static __p::FlowDefinition<'static> = &#definition;
            const __HANDLERS: &'static [__p::Handler<#state>] = __HANDLERS;
            const __BUILD: __p::Option<&'static __p::str> = ::core::option_env!("CARGO_PKG_VERSION");
            fn __output(__outputs: &__p::Outputs<'_>) -> __p::Result<#output, __p::DecodeError> {
                __p::Result::Ok(#output { #(#fields)* })
            }
        }
    }
}

/// Returns whether a step is deprecated, or may name what is.
fn step_deprecated(step: &Step<'_>) -> bool {
    let mentions = |attr: &Attribute| match &attr.meta {
        Meta::List(list) if attr.path().is_ident("allow") || attr.path().is_ident("expect") => {
            let mut tokens = list.tokens.clone().into_iter();
            tokens.any(|token| token.to_string() == "deprecated")
        }
        _ => attr.path().is_ident("deprecated"),
    };
    step.source.attrs.iter().any(mentions)
}

/// `type name = ty;`. A type that may not be used here, such as a private one, is then shown where
/// it was named.
fn associated_type(name: &str, ty: &TokenStream) -> TokenStream {
    let (first, last) = ends(ty);
    let (keyword, end) = (quote_spanned!(first=> type), quote_spanned!(last=> ;));
    let name = Ident::new(name, Span::call_site());
    quote!(#keyword #name = #ty #end)
}

/// The same for a type of ours, which is shown at the visibility that was chosen for it.
fn generated_type(name: &str, flow: &Flow<'_>, ty: &TokenStream) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    let Some(vis) = &flow.args.vis else {
        return quote!(type #name = #ty;);
    };
    let (first, last) = ends(vis);
    let (keyword, end) = (quote_spanned!(first=> type), quote_spanned!(last=> ;));
    quote!(#keyword #name = #ty #end)
}

/// The visibility of the types that stand beside the flow's.
fn visibility(flow: &Flow<'_>) -> TokenStream {
    let vis = flow.args.vis.as_ref();
    vis.map_or_else(|| quote!(pub), ToTokens::to_token_stream)
}

fn state_type(flow: &Flow<'_>) -> TokenStream {
    flow.state
        .as_ref()
        .map_or_else(|| quote!(()), ToTokens::to_token_stream)
}

/// A name made of a prefix of ours and a step's name. The prefixes are distinct, so two of these
/// never are the same.
fn name_for(prefix: &str, step: &Step<'_>) -> Ident {
    format_ident!("{prefix}{}", step.name)
}
