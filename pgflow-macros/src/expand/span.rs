//! Where errors in generated code are shown.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

use crate::model::{
    Flow,
    types::{ends, respan},
};

/// `path::<generics>(args)`, which rustc locates at `at` although no identifier of ours does.
///
/// A failed bound is shown at the generic argument, provided that the call as a whole seems to come from the same place: its
/// first token and its last ones carry the place of `at`.
pub(super) fn call_at(
    at: &impl ToTokens,
    path: TokenStream,
    generics: &TokenStream,
    args: TokenStream,
) -> TokenStream {
    let (first, last) = ends(at);
    let path = lead(path, first);
    let mut args = Group::new(Delimiter::Parenthesis, args);
    args.set_span(last);
    let close = quote_spanned!(last=> >);
    quote!(#path::<#generics #close #args)
}

/// `(receiver).method::<ty>()`, which rustc locates at the type in the same way.
pub(super) fn method_at(ty: &impl ToTokens, receiver: &Ident, method: &str) -> TokenStream {
    let (first, last) = ends(ty);
    let mut receiver = Group::new(Delimiter::Parenthesis, receiver.to_token_stream());
    receiver.set_span(first);
    let method = Ident::new(method, Span::call_site());
    let close = quote_spanned!(last=> >());
    quote!(#receiver.#method::<#ty #close)
}

/// A function of the facade's hidden module.
pub(super) fn private(flow: &Flow<'_>, name: &str) -> TokenStream {
    let krate = &flow.krate;
    let name = Ident::new(name, Span::call_site());
    quote!(#krate::__private::#name)
}

/// Moves the start of a path to a place: the `::` or `<` that it begins with, or a first name that has neither before it.
pub(super) fn lead(path: TokenStream, at: Span) -> TokenStream {
    let tokens: Vec<TokenTree> = path.into_iter().collect();
    let puncts = tokens
        .iter()
        .take_while(|token| matches!(token, TokenTree::Punct(_)))
        .count();
    let leading = puncts.max(1);
    let moved = tokens.into_iter().enumerate().map(|(position, mut token)| {
        if position < leading {
            token.set_span(at);
        }
        token
    });
    moved.collect()
}

/// The path of a step's function by a name with its own span. Only that name carries it: one target for each place in an editor.
pub(super) fn function(flow: &Flow<'_>, name: &Ident) -> TokenStream {
    let self_ty = respan(flow.self_ty.clone(), Span::call_site());
    quote_spanned!(name.span()=> <#self_ty>::#name)
}
