//! The values that are lists.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    LitStr, Path, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    token::Bracket,
};

use super::{arguments::begins_argument, delimited::group, mention::Mention, table, value};
use crate::{errors::Errors, model::types::show};

/// `[a, b]`. A list that is written in another way is reported, and then taken as meant.
pub(super) fn step_names(
    key: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Vec<Mention>> {
    const EXAMPLE: &str = "[step_a, step_b]";
    value::equals(key, input, EXAMPLE)?;
    if !input.peek(Bracket) {
        return unbracketed(key, input, EXAMPLE, errors, Mention::parse, |mention| {
            mention.function_name().to_string()
        })
        .map(|names| names.into_iter().map(Mention::settled).collect());
    }
    let list = group(input)?;
    elements(list.stream(), errors, "the names of steps", Mention::parse)
}

/// `[Debug, Clone]`. A list that is written in another way is reported, and then taken as meant.
pub(super) fn paths(
    key: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Vec<Path>> {
    const EXAMPLE: &str = "[Debug, Clone]";
    let is_call = group(&input.fork()).is_ok();
    if is_call {
        let list = group(&input.fork())?;
        let Err(error) = value::equals(key, input, EXAMPLE) else {
            unreachable!("a group is no `=`")
        };
        errors.push(error);
        let mut of_elements = Errors::default();
        let paths = elements(list.stream(), &mut of_elements, "paths", path);
        of_elements.forget();
        return paths.or_else(|_: syn::Error| Ok(Vec::new()));
    }
    value::equals(key, input, EXAMPLE)?;
    if !input.peek(Bracket) {
        return unbracketed(key, input, EXAMPLE, errors, quoted_path, show);
    }
    let list = group(input)?;
    elements(list.stream(), errors, "paths", |written| {
        let path = quoted_path(written.clone())?;
        if syn::parse2::<LitStr>(written.clone()).is_ok() {
            return Err(syn::Error::new_spanned(
                written,
                format!(
                    "`{key}` lists paths; write `{}` without quotes",
                    show(&path)
                ),
            ));
        }
        Ok(path)
    })
}

fn path(written: TokenStream) -> syn::Result<Path> {
    Path::parse_mod_style.parse2(written.clone()).map_err(|_| {
        syn::Error::new_spanned(
            written,
            "expected the path of a derive, such as `Debug` or `serde::Serialize`",
        )
    })
}

fn quoted_path(written: TokenStream) -> syn::Result<Path> {
    match syn::parse2::<LitStr>(written.clone()) {
        Ok(text) => text.parse_with(Path::parse_mod_style),
        Err(_) => path(written),
    }
}

/// Returns the elements between commas. A missing comma between two names is reported, and then
/// treated as present.
fn elements<T>(
    list: TokenStream,
    errors: &mut Errors,
    what: &str,
    read: impl Fn(TokenStream) -> syn::Result<T>,
) -> syn::Result<Vec<T>> {
    let mut missing: Option<syn::Error> = None;
    let names = |list: ParseStream<'_>| {
        let mut names = Vec::new();
        while !list.is_empty() {
            if list.peek(Token![,]) {
                return Err(list.error(format!("expected one of {what} before this comma")));
            }
            let next = list.fork();
            let are_two = next.parse::<Ident>().is_ok() && next.peek(syn::Ident);
            if are_two {
                names.push(read(list.parse::<Ident>()?.to_token_stream())?);
                missing.get_or_insert_with(|| list.error(format!("expected `,` between {what}")));
                continue;
            }
            names.push(read(value::up_to_comma(list)?)?);
            list.parse::<Option<Token![,]>>()?;
        }
        Ok(names)
    };
    let names = names.parse2(list);
    if let Some(missing) = missing {
        errors.push(missing);
    }
    names
}

/// `a, b` or `(a, b)`.
fn unbracketed<T>(
    key: &Ident,
    input: ParseStream<'_>,
    example: &str,
    errors: &mut Errors,
    read: impl Fn(TokenStream) -> syn::Result<T>,
    name: impl Fn(&T) -> String,
) -> syn::Result<Vec<T>> {
    let (written, elements) = without_brackets(input)?;
    let constant = elements.iter().any(value::is_constant);
    let meant: syn::Result<Vec<T>> = elements.into_iter().map(read).collect();
    match meant {
        Ok(meant) if !meant.is_empty() && !constant => {
            let list: Vec<String> = meant.iter().map(name).collect();
            errors.on(
                written,
                format!(
                    "`{key}` takes a list; write `{key} = [{}]`",
                    list.join(", ")
                ),
            );
            Ok(meant)
        }
        _ => Err(syn::Error::new_spanned(
            written,
            format!("`{key}` takes a list that is written out here, such as `{key} = {example}`"),
        )),
    }
}

/// The elements of `a, b` or `(a, b)`, and all of it as written. It ends where another argument
/// begins.
fn without_brackets(input: ParseStream<'_>) -> syn::Result<(TokenStream, Vec<TokenStream>)> {
    let elements = |list: ParseStream<'_>| {
        let mut written = TokenStream::new();
        let mut elements = Vec::new();
        loop {
            let element = value::whole(list)?;
            written.extend(element.clone());
            elements.push(element);
            if list.is_empty() || is_last(&list.fork()) {
                return Ok((written, elements));
            }
            written.extend([list.parse::<TokenTree>()?]);
            if list.is_empty() {
                return Ok((written, elements));
            }
        }
    };
    let ahead = input.fork();
    match group(&ahead) {
        Ok(list) if ahead.is_empty() || ahead.peek(Token![,]) => {
            let written = input.parse::<TokenTree>()?;
            let (_, elements) = elements.parse2(list.stream())?;
            Ok((written.into(), elements))
        }
        _ => elements(input),
    }
}

/// Returns whether a comma stands here and then nothing, or the next argument.
fn is_last(input: ParseStream<'_>) -> bool {
    if input.parse::<Token![,]>().is_err() || input.is_empty() || begins_argument(input) {
        return true;
    }
    let name = input.call(Ident::parse_any);
    name.is_ok_and(|name| table::is_key(&name.to_string()))
}
