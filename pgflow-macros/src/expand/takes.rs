//! The check of each parameter that takes an output or an element.
//!
//! The runtime has a trait for each sentence about a type that does not fit. Here stands a function
//! for each output that steps take, whose bound is such a trait. rustc underlines the parameter's
//! type, because the call names it, and what the value comes from, because the bound is placed
//! there. The steps' names are constants that the caller is generic over.

use std::collections::HashSet;

use pgflow_definition::SkipMode;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::{
    element::{self, Element},
    span::call_at,
    step_names::StepNames,
    value,
};
use crate::model::{
    Binding, Flow, Output, Param, Skips, Step,
    types::{ends, is_option, is_string, vec_element},
};

/// One function for each way in which a value is taken.
pub(super) fn functions(flow: &Flow<'_>) -> TokenStream {
    let steps = flow.emitted().map(|(_, step)| step);
    let mut seen = HashSet::new();
    let functions: Vec<TokenStream> = steps
        .flat_map(|step| step.params.iter().map(move |param| (step, param)))
        .filter_map(|(step, param)| Check::of(flow, step, param))
        .filter(|check| seen.insert(check.name.to_string()))
        .map(|check| check.function())
        .collect();
    if functions.is_empty() {
        return TokenStream::new();
    }
    quote! {
        struct __Take<const __ME: __p::Name, const __OF: __p::Name>;
        impl<const __ME: __p::Name, const __OF: __p::Name> __Take<__ME, __OF> {
            #(#functions)*
        }
    }
}

/// The value in the slot through the check of this parameter.
pub(super) fn call(
    flow: &Flow<'_>,
    step: &Step<'_>,
    param: &Param,
    names: &mut StepNames,
) -> Option<TokenStream> {
    let (ty, slot) = (&param.ty, &param.local);
    let check = Check::of(flow, step, param)?;
    let function = format_ident!("{}", check.name, span = Span::call_site());
    let me = names.of(step);
    let source = check
        .source
        .map_or_else(|| me.clone(), |source| names.of(source));
    Some(call_at(
        ty,
        &quote!(<__Take<{ #me }, { #source }>>::#function),
        &ty.to_token_stream(),
        quote!(&mut #slot),
    ))
}

struct Check<'m> {
    name: Ident,
    /// The slot of the value: `Required` or `Skippable`.
    slot: &'static str,
    /// The trait.
    sentence: &'static str,
    /// The value's type, and what can be borrowed of it besides itself.
    ty: TokenStream,
    borrowed: Option<TokenStream>,
    /// The step that the value comes from, if it is not the flow's input.
    source: Option<&'m Step<'m>>,
    /// The source of the value: a type that the bound is placed at, and a place on the same line
    /// for the function.
    origin: TokenStream,
    beside_origin: Span,
}

impl<'m> Check<'m> {
    fn of(flow: &'m Flow<'_>, step: &'m Step<'_>, param: &Param) -> Option<Self> {
        match param.binding {
            Binding::Dependency(index) => Self::of_output(flow, index, param),
            Binding::Item => Self::of_element(flow, step),
            _ => None,
        }
    }

    fn of_output(flow: &'m Flow<'_>, index: usize, param: &Param) -> Option<Self> {
        let source = &flow.steps[index];
        let output = source.output.as_ref().ok()?;
        let (slot, what, sentence) = sentence(source, output, flow.skips[index], param);
        let is_list = source.map.is_some() || vec_element(&output.ok).is_some();
        let element = is_list.then(|| value::element_name(source).into_token_stream());
        Some(Self {
            name: format_ident!("{what}_of_{}", source.name, span = output.arrow),
            slot,
            sentence,
            ty: value::output_name(source).into_token_stream(),
            borrowed: borrowed(Some(&output.ok), element),
            source: Some(source),
            origin: output.ok.to_token_stream(),
            beside_origin: output.arrow,
        })
    }

    fn of_element(flow: &'m Flow<'_>, step: &'m Step<'_>) -> Option<Self> {
        let Element::Known(element) = element::of_step(flow, step)? else {
            return None;
        };
        let (name, sentence) = match element.source {
            Some(source) if source.is_tolerant() => (
                format_ident!("element_of_{}", source.name),
                "TakesTolerantElement",
            ),
            Some(source) => (format_ident!("element_of_{}", source.name), "TakesElement"),
            None => (format_ident!("input_element"), "TakesInputElement"),
        };
        let part = element.ty.and_then(vec_element);
        let value = &element.value;
        let part = part.map(|_| quote!(<#value as __p::IntoIterator>::Item));
        Some(Self {
            name,
            slot: "Required",
            sentence,
            borrowed: borrowed(element.ty, part),
            ty: element.value,
            source: element.source,
            origin: element.list,
            beside_origin: element.beside_list,
        })
    }

    fn function(&self) -> TokenStream {
        let (ty, or) = (&self.ty, self.borrowed.as_ref().map(|_| "Or"));
        let borrowed = self.borrowed.as_ref().map(|borrowed| quote!(#borrowed,));
        let slot = format_ident!("{}", self.slot);
        let sentence = format_ident!("{}{}", self.sentence, or.unwrap_or_default());
        // The bound begins and ends at the origin; the function's name stands on the same line, or
        // rustc would show its line too.
        let (first, last) = ends(&self.origin);
        let (binder, close) = (quote_spanned!(first=> for<>), quote_spanned!(last=> >));
        let function = Ident::new(&self.name.to_string(), self.beside_origin);
        quote! {
            fn #function<'s, P>(slot: &'s mut __p::#slot<#ty>) -> P
            where
                P: #binder __p::#sentence<'s, #ty, #borrowed __ME, __OF #close
            {
                __p::FromSlot::from_slot(slot)
            }
        }
    }
}

/// The slot, the function and the trait for an output that a parameter takes.
fn sentence(
    source: &Step<'_>,
    output: &Output,
    skips: Skips,
    param: &Param,
) -> (&'static str, &'static str, &'static str) {
    if skips.leaves_dependents_without {
        let is_fallible = source.when_exhausted() == SkipMode::Skip;
        let sentence = match (source.is_tolerant(), is_fallible) {
            (false, true) => "TakesFallible",
            (false, false) => "TakesConditional",
            (true, true) => "TakesTolerantFallible",
            (true, false) => "TakesTolerantConditional",
        };
        return ("Skippable", "output", sentence);
    }
    if source.is_tolerant() {
        return ("Required", "output", "TakesTolerantOutputs");
    }
    if is_option(&param.ty) && !is_option(&output.ok) {
        let sentence = if skips.cascades {
            "TakesCascading"
        } else {
            "TakesCertain"
        };
        return ("Required", "certain_output", sentence);
    }
    let sentence = match source.map {
        Some(_) => "TakesOutputs",
        None => "TakesOutput",
    };
    ("Required", "output", sentence)
}

/// The form in which a value can be borrowed besides a reference to it.
fn borrowed(ty: Option<&Type>, element: Option<TokenStream>) -> Option<TokenStream> {
    match element {
        Some(element) => Some(quote!(&'s [#element])),
        None if ty.is_some_and(is_string) => Some(quote!(&'s __p::str)),
        None => None,
    }
}
