//! The error for steps that wait for each other.
//!
//! A procedural macro can underline one place for each error. A constant that can't be computed has
//! more: rustc shows each call on the way to the panic. So there is a function for each step of the
//! cycle, which calls the one for the step it waits for, at the name by which it mentions that
//! step.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};

use super::span::{parenthesized, private};
use crate::{check::Cycle, model::Flow};

pub(super) fn check(flow: &Flow<'_>, cycle: &Cycle) -> TokenStream {
    let name = |step: usize| &flow.steps[step].name;
    let message = &cycle.message;
    let mut items = TokenStream::new();
    // What the last step does is to fail; the others are written from there back to the first,
    // which is the constant.
    let (mut callee, mut argument) = (private("never_starts"), quote!(#message));
    let mut next = cycle.edges.first().map_or("", |(first, _)| name(*first));
    for (position, (step, at)) in cycle.edges.iter().enumerate().rev() {
        let item = format_ident!("{}_waits_for_{next}", name(*step));
        let call = call_at(at.span(), callee, argument);
        items.extend(if position == 0 {
            quote!(const #item: () = #call;)
        } else {
            quote!(const fn #item() { #call })
        });
        (callee, argument) = (quote!(#item), TokenStream::new());
        next = name(*step);
    }
    quote!(const _: () = { #items };)
}

/// A call that rustc locates at a name.
fn call_at(at: Span, function: TokenStream, arguments: TokenStream) -> TokenStream {
    let (function, arguments) = (parenthesized(function, at), parenthesized(arguments, at));
    quote!(#function #arguments)
}
