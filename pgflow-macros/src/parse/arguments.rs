//! The loop over `key = value, flag, ..` that both attributes share.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{
    Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use super::{other_words, value};
use crate::{
    errors::Errors,
    names::{nearest, quoted},
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
/// Returns the keys; editors ask for them too.
pub(super) fn each(
    tokens: TokenStream,
    syntax: &Syntax,
    errors: &mut Errors,
    mut read: impl FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> Keys {
    let mut keys = Keys::default();
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

/// What was given, whether or not its value could be read.
#[derive(Default)]
pub(crate) struct Keys {
    given: Vec<Ident>,
    /// Arguments that another word was written for.
    meant: Vec<Ident>,
    /// Whether there was a word that may stand for any of them.
    pub(crate) has_unknown: bool,
}

impl Keys {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ident> {
        let meant = self.meant.iter().filter(|key| !self.given.contains(key));
        self.given.iter().chain(meant)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Ident> {
        self.iter().find(|key| *key == name)
    }
}

fn one(
    input: ParseStream<'_>,
    syntax: &Syntax,
    errors: &mut Errors,
    keys: &mut Keys,
    read: &mut impl FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> syn::Result<()> {
    let Syntax {
        attribute,
        keys: known,
        ..
    } = *syntax;
    let key = input.call(Ident::parse_any).map_err(|error| {
        syn::Error::new(
            error.span(),
            format!("expected an argument of `{attribute}`"),
        )
    })?;
    let name = key.unraw().to_string();
    if !known.contains(&name.as_str()) {
        let (meant, help) = meant(&name, syntax);
        let error = syn::Error::new(
            key.span(),
            format!("`{attribute}` has no argument `{name}`\n\nhelp: {help}"),
        );
        let Some(meant) = meant else {
            keys.has_unknown = true;
            return Err(error);
        };
        if keys.find(meant).is_some() {
            return Err(error);
        }
        errors.push(error);
        // What the word stands for is read all the same, or its absence would be a mistake more; a value of another form is none.
        let meant = Ident::new(meant, key.span());
        let mut of_value = Errors::default();
        if read(&meant, input, &mut of_value).is_err() {
            value::whole(input)?;
        }
        of_value.forget();
        keys.meant.push(meant);
        return end(&name, input);
    }
    if keys.given.contains(&key) {
        return Err(syn::Error::new(
            key.span(),
            format!("`{name}` is given twice; each argument is given once; remove one"),
        ));
    }
    keys.given.push(key.clone());
    read(&key, input, errors)?;
    end(&name, input)
}

fn end(name: &str, input: ParseStream<'_>) -> syn::Result<()> {
    if !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error(format!("expected `,` after the value of `{name}`")));
    }
    Ok(())
}

/// Which argument of the attribute a word may stand for, and what to say.
fn meant(word: &str, syntax: &Syntax) -> (Option<&'static str>, String) {
    let Syntax {
        keys: known,
        other: (other, others),
        ..
    } = *syntax;
    if others.contains(&word) {
        return (None, format!("`{word}` is an argument of `{other}`"));
    }
    if let Some(meant) = other_words::meant(word) {
        let remark = other_words::remark(meant);
        if known.contains(&meant) {
            return (Some(meant), format!("it is called `{meant}` here{remark}"));
        }
        if others.contains(&meant) {
            let help =
                format!("it is called `{meant}` here{remark}, and is an argument of `{other}`");
            return (None, help);
        }
    }
    match nearest(word, known.iter().copied()) {
        Some(meant) => (Some(meant), format!("did you mean `{meant}`?")),
        None => (
            None,
            format!("the arguments are: {}", quoted(known.iter().copied())),
        ),
    }
}
