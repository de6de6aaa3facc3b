//! The loop over `key = value, flag, ..` that both attributes share.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{
    Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use crate::{
    errors::Errors,
    names::{did_you_mean, quoted},
};

/// Which attribute, and what it takes.
pub(super) struct Syntax {
    pub(super) attribute: &'static str,
    pub(super) keys: &'static [&'static str],
    /// The other attribute, and what that one takes.
    pub(super) other: (&'static str, &'static [&'static str]),
}

/// Reads every argument. After a mistake it goes on at the next comma, so that each one is found.
///
/// Returns the keys, for editors.
pub(super) fn each(
    tokens: TokenStream,
    syntax: &Syntax,
    errors: &mut Errors,
    mut read: impl FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> Vec<Ident> {
    let mut keys = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Err(error) = one(input, syntax, errors, &mut keys, &mut read) {
                errors.push(error);
                while !input.is_empty() && !input.peek(Token![,]) {
                    input.parse::<TokenTree>()?;
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        errors.push(error);
    }
    keys
}

fn one(
    input: ParseStream<'_>,
    syntax: &Syntax,
    errors: &mut Errors,
    keys: &mut Vec<Ident>,
    read: &mut impl FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> syn::Result<()> {
    let Syntax {
        attribute,
        keys: known,
        other: (other, others),
    } = *syntax;
    let key = input.call(Ident::parse_any).map_err(|error| {
        syn::Error::new(
            error.span(),
            format!("expected an argument of `{attribute}`"),
        )
    })?;
    let name = key.unraw().to_string();
    if !known.contains(&name.as_str()) {
        let help = if others.contains(&name.as_str()) {
            format!("`{name}` is an argument of `{other}`")
        } else {
            did_you_mean(&name, known.iter().copied())
                .unwrap_or_else(|| format!("the arguments are: {}", quoted(known.iter().copied())))
        };
        return Err(syn::Error::new(
            key.span(),
            format!("`{attribute}` has no argument `{name}`\n\nhelp: {help}"),
        ));
    }
    if keys.contains(&key) {
        return Err(syn::Error::new(
            key.span(),
            format!("`{name}` is given twice; each argument is given once; remove one"),
        ));
    }
    keys.push(key.clone());
    read(&key, input, errors)?;
    if !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error(format!("expected `,` after the value of `{name}`")));
    }
    Ok(())
}
