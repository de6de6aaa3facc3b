//! The codec of each step's output.
//!
//! The only place where the output type must be storable: a missing derive is one error, at the
//! type in the step's signature.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use super::{
    name_for,
    span::{call_at, private},
    value,
};
use crate::model::{Flow, MapOver, Step, types::vec_element};

/// The codec of what dependents read.
pub(super) fn of_output(flow: &Flow<'_>, index: usize) -> TokenStream {
    let step = &flow.steps[index];
    let name = name_for("__CODEC_OF_", step);
    if needs_both(flow, index) {
        quote!(&#name.1)
    } else {
        quote!(&#name)
    }
}

/// The codec of an element; only for a map step, or a step that is mapped over and returns a
/// `Vec<_>`.
pub(super) fn of_element(step: &Step<'_>) -> TokenStream {
    let name = name_for("__CODEC_OF_", step);
    quote!(&#name.0)
}

/// The codec of what a task returns.
pub(super) fn of_task(flow: &Flow<'_>, index: usize) -> TokenStream {
    let step = &flow.steps[index];
    if step.is_tolerant() {
        let name = name_for("__CODEC_OF_", step);
        quote!(&#name.2)
    } else if step.map.is_some() {
        of_element(step)
    } else {
        of_output(flow, index)
    }
}

/// The codec of the flow's input, whose type `impl Flow` checks.
pub(super) fn of_input(flow: &Flow<'_>) -> TokenStream {
    let self_ty = &flow.self_ty;
    quote!(&__p::input_codec::<#self_ty>())
}

/// The codec of an element of it.
pub(super) fn of_input_element(flow: &Flow<'_>) -> TokenStream {
    let element = value::input_element(flow);
    quote!(&<__p::CheckedElsewhere<#element>>::codec())
}

/// The constant that holds a step's codec, or both.
pub(super) fn item(flow: &Flow<'_>, index: usize, step: &Step<'_>) -> TokenStream {
    let Ok(output) = &step.output else {
        return TokenStream::new();
    };
    let (name, value) = (name_for("__CODEC_OF_", step), value::output_name(step));
    if step.is_tolerant() {
        let (some, codecs) = (
            value::some_name(step),
            call_for("tolerant_codecs", &output.ok),
        );
        return quote!(const #name: __p::TolerantCodecs<#some> = #codecs;);
    }
    let element = match step.map {
        Some(_) => Some(&output.ok),
        None => vec_element(&output.ok),
    };
    match element {
        // For a list the bound is asked of the element: the error then names the type that lacks
        // it.
        Some(ty) if needs_both(flow, index) => {
            let (element, codecs) = (value::element_name(step), call_for("list_codecs", ty));
            quote!(const #name: __p::ListCodecs<#element> = #codecs;)
        }
        Some(ty) => {
            let codec = call_for("vec_codec", ty);
            quote!(const #name: __p::Codec<#value> = #codec;)
        }
        None => {
            let codec = call_for("codec", &output.ok);
            quote!(const #name: __p::Codec<#value> = #codec;)
        }
    }
}

/// Returns whether elements are written or read one by one.
fn needs_both(flow: &Flow<'_>, index: usize) -> bool {
    let step = &flow.steps[index];
    let is_list = (step.output.as_ref()).is_ok_and(|output| vec_element(&output.ok).is_some());
    let maps_over =
        |it: &Step<'_>| matches!(it.map, Some(MapOver::Step(source, _)) if source == index);
    step.map.is_some() || (is_list && flow.steps.iter().any(maps_over))
}

fn call_for(function: &str, ty: &impl ToTokens) -> TokenStream {
    call_at(
        ty,
        &private(function),
        &ty.to_token_stream(),
        TokenStream::new(),
    )
}
