//! The places at which errors in generated code are shown.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use crate::model::{Flow, types::ends};

/// `(path::<generics>)(args)`, which rustc locates at `at` although no identifier of ours does.
///
/// A failed bound is shown at the generic argument, provided that the call as a whole seems to come
/// from the same place: its first token and its last ones carry the place of `at`. The first is a
/// parenthesis: every name can then begin with `__p`, so that a wrong path of the crate is one
/// error.
pub(super) fn call_at(
    at: &impl ToTokens,
    path: &TokenStream,
    generics: &TokenStream,
    args: TokenStream,
) -> TokenStream {
    let (first, last) = ends(at);
    let close = quote_spanned!(last=> >);
    let function = parenthesized(quote!(#path::<#generics #close), first);
    let args = parenthesized(args, last);
    quote!(#function #args)
}

/// `(receiver).method::<ty>()`, which rustc locates at the type in the same way.
pub(super) fn method_at(ty: &impl ToTokens, receiver: &Ident, method: &str) -> TokenStream {
    let (first, last) = ends(ty);
    let receiver = parenthesized(receiver.to_token_stream(), first);
    let method = Ident::new(method, Span::call_site());
    let close = quote_spanned!(last=> >());
    quote!(#receiver.#method::<#ty #close)
}

/// A function of the facade's hidden module.
pub(super) fn private(name: &str) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    quote!(__p::#name)
}

/// Both parentheses at one place.
pub(super) fn parenthesized(tokens: TokenStream, at: Span) -> Group {
    let mut group = Group::new(Delimiter::Parenthesis, tokens);
    group.set_span(at);
    group
}

/// The path of a step's function by a name with its own span. The flow's type keeps its place too:
/// a type that is missing is one error however often it is named.
pub(super) fn function(flow: &Flow<'_>, name: &Ident) -> TokenStream {
    let self_ty = &flow.self_ty;
    quote_spanned!(name.span()=> <#self_ty>::#name)
}

/// A name of ours at the place of one of the user's: lints, which are about what the user wrote,
/// pass it over.
pub(super) fn ours_at(name: &Ident) -> Ident {
    let mut name = name.clone();
    name.set_span(Span::call_site().located_at(name.span()));
    name
}

/// `pub` at a place, in the same way.
pub(super) fn visible_at(at: Span) -> TokenStream {
    let at = Span::call_site().located_at(at);
    quote_spanned!(at=> pub)
}
