//! The function of each step that the worker calls: decode, call, encode.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use super::{
    argument, codec,
    element::{self, Element},
    name_for,
    span::{self, call_at, parenthesized, private},
    state_type,
    step_names::StepNames,
    value,
};
use crate::model::{
    Binding, Flow, MapOver, Output, OutputMistake, Param, Step,
    types::{bare, ends, local, names, respan, show},
};

/// The functions, and the constant that lists them in the order of the definition.
pub(super) fn items(flow: &Flow<'_>) -> TokenStream {
    let mut names = Vec::new();
    let functions: Vec<TokenStream> = (flow.emitted())
        .map(|(index, step)| {
            let (function, name) = function(flow, index, step);
            names.push(name);
            function
        })
        .collect();
    let state = state_type(flow);
    quote! {
        #(#functions)*
        // A constant would leave their code to each program that runs the flow.
        static __HANDLERS: &[__p::Handler<#state>] = &[#(#names),*];
    }
}

/// The function of a step, and how it is named in the list.
fn function(flow: &Flow<'_>, index: usize, step: &Step<'_>) -> (TokenStream, TokenStream) {
    let (name, state) = (name_for("__run_", step), state_type(flow));
    let mut names = StepNames::new(flow, step);
    let body = match &step.output {
        Ok(output) if step.is_callable() => body(flow, index, step, output, &mut names),
        Err(OutputMistake::Alias(ty)) => alias(ty),
        _ => quote!(__p::poison()),
    };
    let (parameters, arguments) = names.generics();
    let function = quote! {
        fn #name #parameters (__task: &'a __p::Task<'a>, __state: &'a #state) -> __p::HandlerFuture<'a> {
            #body
        }
    };
    (function, quote!(#name #arguments))
}

/// The body for a return type that does not name the output.
fn alias(ty: &Type) -> TokenStream {
    call_at(
        ty,
        &private("alias"),
        &ty.to_token_stream(),
        TokenStream::new(),
    )
}

fn body(
    flow: &Flow<'_>,
    index: usize,
    step: &Step<'_>,
    output: &Output,
    names: &mut StepNames,
) -> TokenStream {
    let mut decode = item_check(flow, step);
    let mut arguments = TokenStream::new();
    for param in &step.params {
        let argument = argument::of(flow, step, param, names);
        decode.extend(argument.decode);
        let value = argument.value;
        if is_unit(&param.ty) {
            // Named, since clippy has a word about a call whose argument is a call of type `()`.
            let name = local(&format!("__{}", param.local));
            decode.extend(quote!(let (#name,) = (#value,);));
            arguments.extend(quote!(#name,));
        } else {
            arguments.extend(quote!(#value,));
        }
    }
    let (holds, result) = (holds(flow, step), local("__result"));
    let call = call(flow, step, arguments);
    let finish = finish(flow, index, output, &result);
    quote! {
        type __Run = __p::Run<#holds>;
        __Run::handler(async move {
            #decode
            let #result = #call;
            #finish
        })
    }
}

fn is_unit(ty: &Type) -> bool {
    matches!(bare(ty), Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// The types of the state and of the values that the function holds.
fn holds(flow: &Flow<'_>, step: &Step<'_>) -> TokenStream {
    let takes_state = |param: &Param| matches!(param.binding, Binding::State);
    let state = if step.params.iter().any(takes_state) {
        state_type(flow)
    } else {
        quote!(())
    };
    let taken = step.params.iter().filter_map(|param| match param.binding {
        Binding::Input => flow.input.as_ref().map(|_| value::input(flow)),
        Binding::Dependency(index) => Some(&flow.steps[index])
            .filter(|step| step.output.is_ok())
            .map(|step| value::output_name(step).into_token_stream()),
        Binding::Item => item(flow, step),
        Binding::Ctx | Binding::State | Binding::End | Binding::Poisoned(_) => None,
    });
    let own = value::output_name(step).into_token_stream();
    let wrong = step
        .params
        .iter()
        .filter_map(|param| wrong_value(flow, step, param));
    let values: Vec<TokenStream> = taken.chain([own]).chain(wrong).collect();
    let list = (values.iter()).rfold(quote!(()), |rest, value| quote!((#value, #rest)));
    quote!(#state, #list)
}

/// A type that the function holds and that may be none of a stored value, which is a mistake by
/// itself: that threads can't share it is not said too. One that fits is stored, so that it changes
/// nothing.
fn wrong_value(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> Option<TokenStream> {
    let value = match param.binding {
        Binding::Poisoned(_) => return Some(quote!(*const ())),
        Binding::Input => flow.input.to_token_stream(),
        Binding::Dependency(index) => flow.output_type(index)?,
        Binding::Item => match element::of_step(flow, step)? {
            Element::Known(element) => element.ty.to_token_stream(),
            Element::Projected { .. } => return None,
        },
        Binding::Ctx | Binding::State | Binding::End => return None,
    };
    let (taken, value) = (show(&param.ty), show(&value).replace("::std::vec::", ""));
    let is_borrowed = taken.contains(['&', '\'']) || names(&param.ty, "_");
    let is_right = taken == value || taken == format!("Option<{value}>");
    (!is_borrowed && !is_right).then(|| param.ty.to_token_stream())
}

/// The element that a map step gets, or the list where only that has a name.
fn item(flow: &Flow<'_>, step: &Step<'_>) -> Option<TokenStream> {
    match (element::of_step(flow, step)?, step.map?) {
        (Element::Known(element), _) => Some(element.value),
        (_, MapOver::Step(source, _)) => {
            Some(value::output_name(&flow.steps[source]).into_token_stream())
        }
        _ => Some(value::input(flow)),
    }
}

/// The call of the user's function, placed at its name: there a future that is not `Send` is
/// reported.
fn call(flow: &Flow<'_>, step: &Step<'_>, arguments: TokenStream) -> TokenStream {
    let at = step.ident.span();
    let function = span::function(flow, step.ident);
    let arguments = parenthesized(arguments, at);
    let boxed = parenthesized(quote!(__Run::step), at);
    quote!(#boxed(#function #arguments).await)
}

/// The encoding of the result, placed at the return type: there one that is no step's is reported.
fn finish(flow: &Flow<'_>, index: usize, output: &Output, result: &Ident) -> TokenStream {
    let ok = &output.ok;
    let codec = codec::of_task(flow, index);
    let (at, _) = ends(&output.whole);
    let inferred = quote_spanned!(at=> _);
    let err = output
        .err
        .as_ref()
        .map_or_else(|| inferred.clone(), ToTokens::to_token_stream);
    call_at(
        &output.whole,
        &private("finish"),
        &quote!(#ok, #err, #inferred),
        quote!(#result, #codec),
    )
}

/// For a map step that does not take its element: the source must be a list anyway.
fn item_check(flow: &Flow<'_>, step: &Step<'_>) -> TokenStream {
    let takes_item = |param: &Param| matches!(param.binding, Binding::Item);
    match element::of_step(flow, step) {
        Some(Element::Projected { list, at, get }) if !step.params.iter().any(takes_item) => {
            let get = Ident::new(get, at);
            respan(quote!(let _ = __p::#get::<#list>;), at)
        }
        _ => TokenStream::new(),
    }
}
