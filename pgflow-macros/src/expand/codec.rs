//! The codec of each step's output.
//!
//! The only place where the output type must be storable: a missing derive is one error, at the type in the step's signature.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use super::{
    name_for,
    span::{call_at, private},
    value,
};
use crate::model::{Flow, MapOver, Step, types::vec_element};

/// The function that returns the codec of what dependents read.
pub(super) fn name(step: &Step<'_>) -> Ident {
    name_for("__codec_of_", step)
}

/// The function that returns the codec of an element; only for a map step, or a step that is mapped over and returns a `Vec<_>`.
pub(super) fn element_name(step: &Step<'_>) -> Ident {
    name_for("__element_codec_of_", step)
}

pub(super) fn of_step(flow: &Flow<'_>, index: usize, step: &Step<'_>) -> TokenStream {
    let Ok(output) = &step.output else {
        return TokenStream::new();
    };
    let (name, value) = (name(step), value::output_name(step));
    let element_value = value::element_name(step);
    let element = match step.map {
        Some(_) => Some(&output.ok),
        None => vec_element(&output.ok),
    };
    match element {
        // For a list the bound is asked of the element: the error then names the type that lacks it.
        Some(ty) if step.map.is_some() || is_mapped(flow, index) => {
            let (both, element) = (name_for("__list_codecs_of_", step), element_name(step));
            let call = call_for("list_codecs", ty);
            quote! {
                fn #both() -> (__p::Codec<#element_value>, __p::Codec<#value>) { #call }
                fn #element() -> __p::Codec<#element_value> { #both().0 }
                fn #name() -> __p::Codec<#value> { #both().1 }
            }
        }
        Some(ty) => {
            let call = call_for("vec_codec", ty);
            quote!(fn #name() -> __p::Codec<#value> { #call })
        }
        None => {
            let ty = &output.ok;
            let call = call_for("codec", ty);
            quote!(fn #name() -> __p::Codec<#value> { #call })
        }
    }
}

/// The codec of the flow's input, whose type `impl Flow` checks.
pub(super) fn of_input(flow: &Flow<'_>) -> TokenStream {
    let self_ty = &flow.self_ty;
    if flow.input.is_none() {
        return TokenStream::new();
    }
    let input = value::input(flow);
    quote!(fn __input_codec() -> __p::Codec<#input> { __p::input_codec::<#self_ty>() })
}

fn is_mapped(flow: &Flow<'_>, index: usize) -> bool {
    flow.steps
        .iter()
        .any(|step| matches!(step.map, Some(MapOver::Step(source, _)) if source == index))
}

fn call_for(function: &str, ty: &impl ToTokens) -> TokenStream {
    call_at(
        ty,
        &private(function),
        &ty.to_token_stream(),
        TokenStream::new(),
    )
}
