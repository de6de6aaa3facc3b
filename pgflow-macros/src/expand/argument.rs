//! The value of one parameter of a step.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Type;

use super::{
    codec,
    element::{self, Element},
    span::{call_at, method_at, private},
    state_type,
    step_names::StepNames,
    takes,
};
use crate::model::{
    Binding, Flow, Param, Step,
    types::{bare, is_string, respan, vec_element},
};

pub(super) struct Argument {
    /// The statement that decodes it into a slot.
    pub(super) decode: TokenStream,
    /// The expression that takes it.
    pub(super) value: TokenStream,
}

pub(super) fn of(
    flow: &Flow<'_>,
    step: &Step<'_>,
    param: &Param,
    names: &mut StepNames,
) -> Argument {
    let (ty, slot) = (&param.ty, &param.local);
    match param.binding {
        Binding::Input => input(flow, param),
        Binding::Item => item(flow, step, param, names),
        Binding::Dependency(index) => {
            let (slug, codec) = (&flow.steps[index].slug, codec::of_output(flow, index));
            let get = if flow.skips[index].leaves_dependents_without {
                quote!(skippable)
            } else {
                quote!(required)
            };
            let decode = quote!(let mut #slot = __task.#get(#slug, #codec)?;);
            checked(flow, step, param, names, decode)
        }
        Binding::Ctx => only(call_at(
            ty,
            &private("ctx"),
            &ty.to_token_stream(),
            quote!(__task.ctx()),
        )),
        Binding::State => only(state(flow, ty)),
        Binding::End => Argument {
            decode: quote!(let mut #slot = __task.end()?;),
            value: call_at(
                ty,
                &private("end"),
                &ty.to_token_stream(),
                quote!(&mut #slot),
            ),
        },
        Binding::Poisoned(_) => poison(ty),
    }
}

fn only(value: TokenStream) -> Argument {
    Argument {
        decode: TokenStream::new(),
        value,
    }
}

fn poison(ty: &Type) -> Argument {
    only(quote!(__p::poison::<#ty>()))
}

/// The value through the check of this parameter.
fn checked(
    flow: &Flow<'_>,
    step: &Step<'_>,
    param: &Param,
    names: &mut StepNames,
    decode: TokenStream,
) -> Argument {
    match takes::call(flow, step, param, names) {
        Some(value) => Argument { decode, value },
        None => poison(&param.ty),
    }
}

/// Chooses the function that fills the parameter, which decides the wording of the error when the
/// type does not fit.
fn input(flow: &Flow<'_>, param: &Param) -> Argument {
    let (ty, slot, input) = (&param.ty, &param.local, &flow.input);
    let element = input.as_ref().and_then(vec_element);
    let (function, generics) = match (input, element) {
        (_, Some(element)) => ("list_input", quote!(#ty, #input, #element)),
        (Some(input), None) if is_string(input) => ("text_input", quote!(#ty, #input)),
        _ => ("input", quote!(#ty, #input)),
    };
    let codec = codec::of_input(flow);
    Argument {
        decode: quote!(let mut #slot = __task.input(#codec)?;),
        value: call_at(ty, &private(function), &generics, quote!(&mut #slot)),
    }
}

fn state(flow: &Flow<'_>, ty: &Type) -> TokenStream {
    let state = state_type(flow);
    let function = match bare(ty) {
        Type::Reference(_) => "state",
        _ => "state_by_value",
    };
    call_at(
        ty,
        &private(function),
        &quote!(#ty, #state),
        quote!(__state),
    )
}

fn item(flow: &Flow<'_>, step: &Step<'_>, param: &Param, names: &mut StepNames) -> Argument {
    let (ty, slot) = (&param.ty, &param.local);
    match element::of_step(flow, step) {
        None => poison(ty),
        Some(Element::Known(element)) => {
            let codec = element.codec;
            let decode = quote!(let mut #slot = __task.item(#codec)?;);
            checked(flow, step, param, names, decode)
        }
        Some(Element::Projected { list, at, get }) => {
            // Every token at `map = ..`, so that "not a list" is one error there.
            let list = respan(list, at);
            let place = respan(quote!(_), at);
            let decode = call_at(&place, &private(get), &list, quote!(__task));
            Argument {
                decode: quote!(let mut #slot = #decode?;),
                value: method_at(ty, slot, "take_item"),
            }
        }
    }
}
