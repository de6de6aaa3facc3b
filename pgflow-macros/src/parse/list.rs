//! The values that are lists.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use syn::{
    Path, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
    token::Bracket,
};

use super::value;
use crate::{errors::Errors, model::types::show};

/// `[a, b]`. Names that are written in another way are reported, and then taken as meant.
pub(super) fn step_names(
    key: &Ident,
    input: ParseStream<'_>,
    keys: &[&str],
    errors: &mut Errors,
) -> syn::Result<Vec<Ident>> {
    value::equals(key, input, "[step_a, step_b]")?;
    if !input.peek(Bracket) {
        let (written, elements) = without_brackets(input, keys)?;
        let names: Option<Vec<Ident>> = elements.into_iter().map(|name| meant(&name)).collect();
        return match names {
            Some(names) if !names.is_empty() => {
                let list: Vec<String> = names.iter().map(Ident::to_string).collect();
                errors.on(
                    written,
                    format!(
                        "`{key}` takes a list; write `{key} = [{}]`",
                        list.join(", ")
                    ),
                );
                Ok(names)
            }
            _ => Err(syn::Error::new_spanned(
                written,
                format!("`{key}` takes a list of step names, such as `{key} = [step_a, step_b]`"),
            )),
        };
    }
    let list: Group = input.parse()?;
    if list.stream().is_empty() {
        errors.at(
            list.span(),
            format!(
                "`{key} = []` lists no step; leave `{key}` out for a step without dependencies"
            ),
        );
    }
    let names = |list: ParseStream<'_>| {
        let mut names = Vec::new();
        while !list.is_empty() {
            names.push(step_name(list, errors)?);
            if list.is_empty() {
                break;
            }
            list.parse::<Token![,]>().map_err(|error| {
                syn::Error::new(error.span(), "expected `,` between the names of steps")
            })?;
        }
        Ok(names)
    };
    names.parse2(list.stream())
}

fn step_name(list: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Ident> {
    let written = value::whole(&list.fork())?;
    if let Some(name) = meant(&written).filter(|name| *name != written.to_string()) {
        value::whole(list)?;
        errors.on(
            &written,
            format!(
                "steps are named by their function: write `{name}` instead of `{}`",
                show(&written)
            ),
        );
        return Ok(name);
    }
    list.call(Ident::parse_any)
        .map_err(|error| syn::Error::new(error.span(), "expected the name of a step"))
}

/// The name in `parse`, `"parse"`, `Self::parse` or `parse()`.
pub(super) fn meant(written: &TokenStream) -> Option<Ident> {
    let tokens: Vec<TokenTree> = written.clone().into_iter().collect();
    match &tokens[..] {
        [TokenTree::Ident(name)] => Some(name.clone()),
        [TokenTree::Literal(literal)] => {
            let text = literal.to_string();
            let mut name = syn::parse_str::<Ident>(text.trim_matches('"')).ok()?;
            name.set_span(literal.span());
            Some(name)
        }
        [called @ .., TokenTree::Group(_)] if !called.is_empty() => in_path(called),
        path => in_path(path),
    }
}

fn in_path(tokens: &[TokenTree]) -> Option<Ident> {
    let path: Path = syn::parse2(tokens.iter().cloned().collect()).ok()?;
    let last = path.segments.last()?;
    last.arguments.is_none().then(|| last.ident.clone())
}

/// `[Debug, Clone]`. Paths that are written in another way are reported, and then taken as meant.
pub(super) fn paths(
    key: &Ident,
    input: ParseStream<'_>,
    keys: &[&str],
    errors: &mut Errors,
) -> syn::Result<Vec<Path>> {
    const EXAMPLE: &str = "[Debug, Clone]";
    let parse = |list: TokenStream| {
        let paths = Punctuated::<Path, Token![,]>::parse_terminated_with;
        let paths = (|list: ParseStream<'_>| paths(list, Path::parse_mod_style)).parse2(list)?;
        Ok(paths.into_iter().collect())
    };
    let is_call = input.fork().parse::<Group>().is_ok();
    if is_call {
        let list = input.fork().parse::<Group>()?;
        let Err(error) = value::equals(key, input, EXAMPLE) else {
            unreachable!("a group is no `=`")
        };
        errors.push(error);
        return parse(list.stream()).or_else(|_: syn::Error| Ok(Vec::new()));
    }
    value::equals(key, input, EXAMPLE)?;
    if input.peek(Bracket) {
        let list: Group = input.parse()?;
        return parse(list.stream());
    }
    let (written, elements) = without_brackets(input, keys)?;
    let meant = elements.iter().map(|element| {
        let text = element.to_string();
        syn::parse_str::<Path>(text.trim_matches('"')).ok()
    });
    match meant.collect::<Option<Vec<Path>>>() {
        Some(paths) if !paths.is_empty() => {
            let list: Vec<String> = paths.iter().map(show).collect();
            errors.on(
                written,
                format!(
                    "`{key}` takes a list; write `{key} = [{}]`",
                    list.join(", ")
                ),
            );
            Ok(paths)
        }
        _ => Err(syn::Error::new_spanned(
            written,
            format!("`{key}` takes a list, such as `{key} = {EXAMPLE}`"),
        )),
    }
}

/// The elements of `a, b` or `(a, b)`, and all of it as written. It ends where another argument begins.
fn without_brackets(
    input: ParseStream<'_>,
    keys: &[&str],
) -> syn::Result<(TokenStream, Vec<TokenStream>)> {
    let elements = |list: ParseStream<'_>| {
        let mut written = TokenStream::new();
        let mut elements = Vec::new();
        loop {
            let element = value::whole(list)?;
            written.extend(element.clone());
            elements.push(element);
            if list.is_empty() || is_argument(&list.fork(), keys) {
                return Ok((written, elements));
            }
            written.extend([list.parse::<TokenTree>()?]);
            if list.is_empty() {
                return Ok((written, elements));
            }
        }
    };
    let ahead = input.fork();
    match ahead.parse::<Group>() {
        Ok(group) if ahead.is_empty() || ahead.peek(Token![,]) => {
            let written = input.parse::<TokenTree>()?;
            let (_, elements) = elements.parse2(group.stream())?;
            Ok((written.into(), elements))
        }
        _ => elements(input),
    }
}

/// Whether a comma stands here and then nothing, or the next argument.
fn is_argument(input: ParseStream<'_>, keys: &[&str]) -> bool {
    if input.parse::<Token![,]>().is_err() || input.is_empty() {
        return true;
    }
    input.call(Ident::parse_any).is_ok_and(|name| {
        let is_assigned = input.peek(Token![=]) && !input.peek(Token![==]);
        is_assigned || keys.contains(&name.unraw().to_string().as_str())
    })
}
