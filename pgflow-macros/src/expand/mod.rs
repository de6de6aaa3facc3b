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
mod value;

#[cfg(test)]
mod tests;

pub(crate) use item::user_item;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use crate::{
    check::Cycle,
    model::{Flow, Step, types::ends},
};

/// All that stands beside the user's `impl`.
pub(crate) fn generated(flow: &Flow<'_>, cycles: &[Cycle]) -> TokenStream {
    let step_enum = step_enum::item(flow);
    if flow.is_generic {
        return generic(flow, &step_enum);
    }
    let output = output::item(flow);
    let cycles = cycles.iter().map(|cycle| cycle::check(flow, cycle));
    let krate = &flow.krate;
    let mentions = mentions::function(flow);
    let values = (flow.emitted()).map(|(_, step)| value::of_step(step));
    let input_codecs = codec::of_input(flow);
    let codecs = flow
        .emitted()
        .map(|(index, step)| codec::of_step(flow, index, step));
    let handlers = handlers(flow);
    let takes = takes::checks(flow);
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
            #mentions
            #(#cycles)*
            #(#values)*
            #input_codecs
            #takes
            #(#codecs)*
            #handlers
            #step_id
            #implementation
        };
    }
}

/// Only the enum: all else would need the parameters.
fn generic(flow: &Flow<'_>, step_enum: &TokenStream) -> TokenStream {
    let (krate, step_id) = (&flow.krate, step_enum::step_id(flow));
    quote! {
        #step_enum
        const _: () = {
            use #krate::__private as __p;
            #step_id
        };
    }
}

/// The functions that the worker calls, and `impl StateOfHandlers`.
///
/// All of it under conditions: that the state can be shared, and for each function that its values can be stored, which says that they can be
/// shared too. A state that can't is then one error, where `impl Flow` names it, and an output or the input one where its codec is made;
/// neither is one more for each step that takes it. With a binder, rustc takes a condition as given and looks at it only where it is
/// asked for: to list a function whose condition does not hold, it goes on to the trait.
fn handlers(flow: &Flow<'_>) -> TokenStream {
    let state = state_type(flow);
    let of_state = (flow.state.as_ref())
        .map(|state| quote!(for<'s> #state: __p::SharedState + __p::Send + __p::Sync,));
    let steps = flow.emitted().map(|(_, step)| step);
    let functions = steps.clone().map(|step| {
        let (function, values) = (runner::function(flow, step), runner::values(flow, step));
        quote! {
            impl __Run
            where
                #of_state
                #(for<'s> #values: __p::Stored,)*
                // Holds, and spares rustc to look through all that a task is made of, under the conditions of each step anew.
                for<'s> __p::Task<'s>: __p::Sync,
            {
                #function
            }
        }
    });
    let unlisted = steps.clone().map(|step| runner::unlisted(flow, step));
    let names = steps.map(runner::name);
    let step_enum = step_enum::path(flow);
    quote! {
        struct __Run;
        #(#functions)*
        trait __Unlisted { #(#unlisted)* }
        impl __Unlisted for __Run {}
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl __p::StateOfHandlers<#step_enum> for #state where #of_state {
            const HANDLERS: &'static [__p::Handler<Self>] = &[#(__Run::#names),*];
        }
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
    let (step_enum, output) = (step_enum::path(flow), &flow.output);
    let queues = if flow.args.with_step_queues {
        quote!(__p::QueuePerStep)
    } else {
        quote!(__p::OneQueue)
    };
    let definition = definition::literal(flow);
    let fields = output::fields(flow);
    quote! {
        #[automatically_derived]
        impl __p::Flow for #self_ty {
            #input
            type Output = #output;
            #state_item
            type Step = #step_enum;
            type Queues = #queues;
            const DEFINITION: &'static __p::FlowDefinition<'static> = &#definition;
            fn __output(__outputs: &__p::Outputs<'_>) -> __p::Result<#output, __p::DecodeError> {
                __p::Result::Ok(#output { #(#fields)* })
            }
        }
    }
}

/// `type name = ty;`. A type that may not be used here, such as a private one, is then shown where it was named.
fn associated_type(name: &str, ty: &TokenStream) -> TokenStream {
    let (first, last) = ends(ty);
    let (keyword, end) = (quote_spanned!(first=> type), quote_spanned!(last=> ;));
    let name = Ident::new(name, Span::call_site());
    quote!(#keyword #name = #ty #end)
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
