//! Steps whose signature lacks a part.
//!
//! rustc has said so before it asks a macro, goes on behind the mistake, and would say the same
//! again of what is written out. So the part is put where it is missing, and all else that there is
//! to say of the step can be said.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{ParseStream, Parser};

use super::StepFn;

/// The step with the one part that it lacks.
pub(super) fn step(tokens: &TokenStream) -> Option<StepFn> {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let candidates = [with_fn(&tokens), with_arrow(&tokens), with_colons(&tokens)];
    candidates.into_iter().flatten().find_map(|tokens| {
        let whole = |input: ParseStream<'_>| match StepFn::parse(input) {
            Some(step) if input.is_empty() => Ok(step),
            _ => Err(input.error("not a step")),
        };
        whole.parse2(tokens).ok()
    })
}

/// The function with a name, if it has none.
pub(super) fn with_name(tokens: &TokenStream, number: usize) -> TokenStream {
    let written: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let Some(at) = position(&written, "fn") else {
        return tokens.clone();
    };
    match written.get(at + 1) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            let name = format_ident!("__unnamed_{number}", span = Span::call_site());
            insert(&written, at + 1, &quote!(#name))
        }
        _ => tokens.clone(),
    }
}

/// `async name(..)`.
fn with_fn(tokens: &[TokenTree]) -> Option<TokenStream> {
    let at = position(tokens, "async")? + 1;
    let is_name = matches!(tokens.get(at), Some(TokenTree::Ident(name)) if name != "fn");
    let is_function = matches!(
        tokens.get(at + 1),
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
    );
    (is_name && is_function).then(|| insert(tokens, at, &quote!(fn)))
}

/// `fn name(..) Type {`.
fn with_arrow(tokens: &[TokenTree]) -> Option<TokenStream> {
    let at = parameters(tokens)? + 1;
    let is_type = match tokens.get(at)? {
        TokenTree::Ident(word) => word != "where",
        TokenTree::Punct(punct) => punct.as_char() != '-',
        TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
        TokenTree::Literal(_) => false,
    };
    is_type.then(|| insert(tokens, at, &quote!(->)))
}

/// `name Type` among the parameters.
fn with_colons(tokens: &[TokenTree]) -> Option<TokenStream> {
    let at = parameters(tokens)?;
    let TokenTree::Group(group) = &tokens[at] else {
        return None;
    };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut written = TokenStream::new();
    let mut may_be_name = true;
    for (position, token) in inner.iter().enumerate() {
        token.to_tokens(&mut written);
        let next = inner.get(position + 1);
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => may_be_name = true,
            // An attribute, or `mut`.
            TokenTree::Punct(punct) if punct.as_char() == '#' => {}
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {}
            TokenTree::Ident(word) if word == "mut" => {}
            TokenTree::Ident(_) if may_be_name && next.is_some_and(begins_type) => {
                written.extend(quote!(:));
                may_be_name = false;
            }
            _ => may_be_name = false,
        }
    }
    let mut parameters = Group::new(Delimiter::Parenthesis, written);
    parameters.set_span(group.span());
    let (before, behind) = (&tokens[..at], &tokens[at + 1..]);
    Some(quote!(#(#before)* #parameters #(#behind)*))
}

fn begins_type(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(punct) => matches!(punct.as_char(), '&' | '*'),
        TokenTree::Ident(_) | TokenTree::Group(_) => true,
        TokenTree::Literal(_) => false,
    }
}

/// The position of the parameters of a function without generics.
fn parameters(tokens: &[TokenTree]) -> Option<usize> {
    let at = position(tokens, "fn")? + 2;
    let is_list = matches!(
        tokens.get(at),
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
    );
    is_list.then_some(at)
}

fn position(tokens: &[TokenTree], word: &str) -> Option<usize> {
    let is_word = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == word);
    tokens.iter().position(is_word)
}

fn insert(tokens: &[TokenTree], at: usize, part: &TokenStream) -> TokenStream {
    let (before, behind) = tokens.split_at(at);
    quote!(#(#before)* #part #(#behind)*)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str) -> Option<String> {
        let step = step(&text.parse().expect("tokens"))?;
        Some(step.sig.to_token_stream().to_string())
    }

    #[test]
    fn the_part_that_is_missing_is_found() {
        for (broken, whole) in [
            (
                "#[step] async load(a: &[u8]) -> StepResult<u8> { 1 }",
                "async fn load(a: &[u8]) -> StepResult<u8>",
            ),
            (
                "#[step] pub async fn load(a: u8) StepResult<u8> { 1 }",
                "async fn load(a: u8) -> StepResult<u8>",
            ),
            (
                "#[step] async fn load(#[from(b)] mut a &[u8], c: u8, d Option<u8>) -> StepResult<u8> { 1 }",
                "async fn load(mut a: &[u8], c: u8, d: Option<u8>) -> StepResult<u8>",
            ),
        ] {
            let whole: TokenStream = whole.parse().expect("tokens");
            assert_eq!(repaired(broken), Some(whole.to_string()), "{broken}");
        }
    }

    #[test]
    fn what_lacks_more_stays() {
        for broken in [
            "#[step] async fn (a: u8) -> StepResult<u8> { 1 }",
            "#[step] async fn load(a: ) -> StepResult<u8> { 1 }",
            "#[step] async load(a u8) StepResult<u8> { 1 }",
            "#[step] const LOAD: u8 = 1;",
        ] {
            assert_eq!(repaired(broken), None, "{broken}");
        }
    }
}
