//! The error for steps that wait for each other.
//!
//! A procedural macro can underline one place for each error. A constant that panics while it is evaluated can have more: rustc
//! shows each call on the way, so there is one function for each step of the cycle, called at the name that mentions it.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use crate::{check::Cycle, model::Flow};

pub(super) fn evaluation(flow: &Flow<'_>, cycle: &Cycle) -> TokenStream {
    let message = cycle.message.replace('{', "{{").replace('}', "}}");
    // What happens at each name: the next step's function is called, and at the last one it ends.
    let call = |position: usize| {
        let (_, name) = &cycle.edges[position];
        let at = name.span();
        if let Some((next, _)) = cycle.edges.get(position + 1) {
            let mut function = flow.steps[*next].ident.clone();
            function.set_span(at);
            quote_spanned!(at=> #function())
        } else {
            quote_spanned!(at=> ::core::panic!(#message))
        }
    };
    let functions = cycle
        .edges
        .iter()
        .enumerate()
        .skip(1)
        .map(|(position, (step, _))| {
            let mut function = flow.steps[*step].ident.clone();
            function.set_span(Span::call_site());
            let body = call(position);
            quote!(const fn #function() { #body })
        });
    let start = call(0);
    quote! {
        mod cycle {
            #(#functions)*
            const START: () = #start;
        }
    }
}
