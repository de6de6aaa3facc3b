//! The types of stored values, as items of ours name them.
//!
//! A type can hide a lifetime: `Name` of a `struct Name<'a>(..)`. rustc then asks for it wherever
//! an item names the type, in other words for each kind of place, and drops what it has said
//! already. So an output is written out as what a function returns, which is what the user wrote,
//! and the input once, in `impl Flow`; all other items name those. Bodies of functions may name any
//! type.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::name_for;
use crate::model::{Flow, Step, types::vec_element};

/// The aliases for what a step returns.
pub(super) fn of_step(step: &Step<'_>) -> TokenStream {
    let Ok(output) = &step.output else {
        return TokenStream::new();
    };
    let name = output_name(step);
    let element = match step.map {
        Some(_) => Some(&output.ok),
        None => vec_element(&output.ok),
    };
    if step.is_tolerant() {
        let (some, element, ty) = (some_name(step), element_name(step), &output.ok);
        return quote! {
            type #some = __p::Value<fn() -> #ty>;
            type #element = __p::Option<#some>;
            type #name = __p::Vec<#element>;
        };
    }
    if let Some(ty) = element {
        let element = element_name(step);
        quote! {
            type #element = __p::Value<fn() -> #ty>;
            type #name = __p::Vec<#element>;
        }
    } else {
        let ty = &output.ok;
        quote!(type #name = __p::Value<fn() -> #ty>;)
    }
}

/// Returns the name of the type that dependents take; only for a step whose output is readable.
pub(super) fn output_name(step: &Step<'_>) -> Ident {
    name_for("__Out_", step)
}

/// An element of it; only for a map step, or one that returns a `Vec<_>`.
pub(super) fn element_name(step: &Step<'_>) -> Ident {
    name_for("__Item_", step)
}

/// The type of an element that did not fail; only for a map step that goes on without failed ones.
pub(super) fn some_name(step: &Step<'_>) -> Ident {
    name_for("__Some_", step)
}

/// The flow's input.
pub(super) fn input(flow: &Flow<'_>) -> TokenStream {
    let self_ty = &flow.self_ty;
    quote!(<#self_ty as __p::Flow>::Input)
}

/// An element of an input that is written `Vec<_>`.
pub(super) fn input_element(flow: &Flow<'_>) -> TokenStream {
    let input = input(flow);
    quote!(<#input as __p::IntoIterator>::Item)
}
