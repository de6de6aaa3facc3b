//! The function of each step that the worker calls: decode, call, encode.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use super::{
    codec,
    element::{self, Element},
    name_for,
    span::{self, call_at, method_at, parenthesized, private},
    state_type, takes, value,
};
use crate::model::{
    Binding, Flow, MapOver, Output, Param, Step,
    types::{bare, ends, is_string, local, respan, vec_element},
};

pub(super) fn name(step: &Step<'_>) -> Ident {
    name_for("__run_", step)
}

pub(super) fn function(flow: &Flow<'_>, step: &Step<'_>) -> TokenStream {
    let signature = signature(flow, step);
    let body = match &step.output {
        Ok(output) if step.is_callable() => body(flow, step, output),
        _ => quote!(::core::unreachable!()),
    };
    quote!(#signature { #body })
}

/// What stands for the function where one of its values can't be shared; such a program does not compile.
pub(super) fn unlisted(flow: &Flow<'_>, step: &Step<'_>) -> TokenStream {
    let signature = signature(flow, step);
    quote!(#signature { __p::poison() })
}

fn signature(flow: &Flow<'_>, step: &Step<'_>) -> TokenStream {
    let (name, state) = (name(step), state_type(flow));
    quote! {
        fn #name<'a>(__task: &'a __p::Task<'a>, __state: &'a #state) -> __p::HandlerFuture<'a>
    }
}

/// The types of the values that the function holds, and of the elements of lists, which parameters borrow too.
pub(super) fn values<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>) -> Vec<TokenStream> {
    let taken = step.params.iter().flat_map(|param| match param.binding {
        Binding::Input => {
            let element = flow.input.as_ref().and_then(vec_element);
            let whole = flow.input.as_ref().map(|_| value::input(flow));
            (whole.into_iter())
                .chain(element.map(|_| value::input_element(flow)))
                .collect()
        }
        Binding::Dependency(index) => value::all_of_step(&flow.steps[index]).collect(),
        Binding::Item => item(flow, step).into_iter().collect(),
        Binding::Ctx | Binding::State | Binding::Poisoned(_) => Vec::new(),
    });
    taken.chain(value::all_of_step(step)).collect()
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

fn body(flow: &Flow<'_>, step: &Step<'_>, output: &Output) -> TokenStream {
    let mut decode = item_check(flow, step);
    let mut arguments = TokenStream::new();
    for param in &step.params {
        let argument = Argument::of(flow, step, param);
        decode.extend(argument.decode);
        let value = argument.value;
        arguments.extend(quote!(#value,));
    }
    let result = local("__result");
    let call = call(flow, step, arguments);
    let finish = finish(step, output, &result);
    quote! {
        ::std::boxed::Box::pin(async move {
            #decode
            let #result = #call;
            #finish
        })
    }
}

/// The call of the user's function, placed at its name: there a future that is not `Send` is reported.
fn call(flow: &Flow<'_>, step: &Step<'_>, arguments: TokenStream) -> TokenStream {
    let at = step.ident.span();
    let function = span::function(flow, step.ident);
    let arguments = parenthesized(arguments, at);
    let boxed = parenthesized(private("boxed"), at);
    quote!(#boxed(#function #arguments).await)
}

/// The encoding of the result, placed at the return type: there one that is no step's is reported.
fn finish(step: &Step<'_>, output: &Output, result: &Ident) -> TokenStream {
    let ok = &output.ok;
    let codec = match step.map {
        Some(_) => codec::element_name(step),
        None => codec::name(step),
    };
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
        quote!(#result, &#codec()),
    )
}

/// For a map step that does not take its element: the source must be a list all the same.
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

/// How one parameter gets its value.
struct Argument {
    /// The statement that decodes it into a slot.
    decode: TokenStream,
    /// The expression that takes it.
    value: TokenStream,
}

impl Argument {
    fn of(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> Self {
        let ty = &param.ty;
        match param.binding {
            Binding::Input => Self::input(flow, param),
            Binding::Item => Self::item(flow, step, param),
            Binding::Dependency(index) => Self::dependency(flow, step, param, index),
            Binding::Ctx => Self::only(call_at(
                ty,
                &private("ctx"),
                &ty.to_token_stream(),
                quote!(__task.ctx()),
            )),
            Binding::State => Self::only(Self::state(flow, ty)),
            Binding::Poisoned(_) => Self::poison(ty),
        }
    }

    fn only(value: TokenStream) -> Self {
        Self {
            decode: TokenStream::new(),
            value,
        }
    }

    fn poison(ty: &Type) -> Self {
        Self::only(quote!(__p::poison::<#ty>()))
    }

    /// Which function fills the parameter decides how its forms are named when the type does not fit.
    fn input(flow: &Flow<'_>, param: &Param) -> Self {
        let (ty, slot, input) = (&param.ty, &param.local, &flow.input);
        let element = input.as_ref().and_then(vec_element);
        let (function, generics) = match (input, element) {
            (_, Some(element)) => ("list_input", quote!(#ty, #input, #element)),
            (Some(input), None) if is_string(input) => ("text_input", quote!(#ty, #input)),
            _ => ("input", quote!(#ty, #input)),
        };
        Self {
            decode: quote!(let mut #slot = __task.input(&__input_codec())?;),
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

    fn dependency(flow: &Flow<'_>, step: &Step<'_>, param: &Param, index: usize) -> Self {
        let dependency = &flow.steps[index];
        let (slot, slug, codec) = (&param.local, &dependency.slug, codec::name(dependency));
        let get = if flow.skips[index].leaves_dependents_without {
            quote!(skippable)
        } else {
            quote!(required)
        };
        Self {
            decode: quote!(let mut #slot = __task.#get(#slug, &#codec())?;),
            value: checked(flow, step, param),
        }
    }

    fn item(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> Self {
        let (ty, slot) = (&param.ty, &param.local);
        match element::of_step(flow, step) {
            None => Self::poison(ty),
            Some(Element::Known(element)) => {
                let codec = element.codec;
                Self {
                    decode: quote!(let mut #slot = __task.item(&#codec())?;),
                    value: checked(flow, step, param),
                }
            }
            Some(Element::Projected { list, at, get }) => {
                // Every token at `map = ..`, so that "not a list" is one error there.
                let list = respan(list.to_token_stream(), at);
                let place = respan(quote!(_), at);
                let decode = call_at(&place, &private(get), &list, quote!(__task));
                Self {
                    decode: quote!(let mut #slot = #decode?;),
                    value: method_at(ty, slot, "take_item"),
                }
            }
        }
    }
}

/// The value through the check of this parameter.
fn checked(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> TokenStream {
    let (ty, slot) = (&param.ty, &param.local);
    let mut function = takes::name(flow, step, param);
    function.set_span(Span::call_site());
    call_at(
        ty,
        &quote!(<__Takes>::#function),
        &ty.to_token_stream(),
        quote!(&mut #slot),
    )
}
