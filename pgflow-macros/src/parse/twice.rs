//! An attribute that is given more than once, read as one.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Meta, ext::IdentExt};

/// The arguments of both. Of an argument that both have, the first one stays: that there are two
/// attributes is mistake enough.
pub(super) fn merged(first: TokenStream, second: TokenStream) -> TokenStream {
    let keys: Vec<String> = parts(first.clone())
        .iter()
        .filter_map(|it| key(it))
        .collect();
    let added = parts(second).into_iter().filter(|part| {
        let key = key(part);
        !part.is_empty() && !key.is_some_and(|key| keys.contains(&key))
    });
    let all = parts(first).into_iter().filter(|part| !part.is_empty());
    let all = all.chain(added).map(TokenStream::from_iter);
    quote!(#(#all),*)
}

/// The arguments of an attribute.
pub(super) fn arguments(attr: &Attribute) -> TokenStream {
    match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) => TokenStream::new(),
        Meta::NameValue(meta) => meta.value.to_token_stream(),
    }
}

/// The tokens between commas.
fn parts(arguments: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    let is_comma =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    tokens.split(is_comma).map(<[TokenTree]>::to_vec).collect()
}

fn key(part: &[TokenTree]) -> Option<String> {
    match part.first()? {
        TokenTree::Ident(key) => Some(Ident::unraw(key).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_taken_together() {
        let both = merged(
            quote!(depends_on = [a, b], timeout = "5s",),
            quote!(timeout = "7s", r#if = { a: 1, b: 2 }, with_step_queues),
        );
        let expected =
            quote!(depends_on = [a, b], timeout = "5s", r#if = { a: 1, b: 2 }, with_step_queues);
        assert_eq!(both.to_string(), expected.to_string());
        assert!(merged(TokenStream::new(), TokenStream::new()).is_empty());
    }
}
