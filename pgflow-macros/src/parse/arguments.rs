//! The loop over `key = value, flag, ..` that both attributes share.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Token, Type,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use super::{
    table::{self, Argument},
    value,
};
use crate::{
    errors::Errors,
    model::types::show,
    names::{is_misspelt, nearest, quoted},
};

/// The attribute, and its arguments.
pub(super) struct Syntax {
    pub(super) attribute: &'static str,
    pub(super) arguments: &'static [Argument],
    /// The other attribute, and what that one takes.
    pub(super) other: (&'static str, &'static [Argument]),
    /// The arguments that types without a key stand for, in this order.
    pub(super) type_arguments: &'static [&'static str],
    /// The likely meaning of a word without a value; `{}` stands for the word.
    pub(super) alone: Option<&'static str>,
}

impl Syntax {
    fn knows(&self, key: &str) -> bool {
        self.keys().any(|known| known == key)
    }

    fn keys(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.arguments.iter().map(|argument| argument.key)
    }
}

/// Reads every argument. After a mistake it continues at the next comma, so that each one is found.
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
                while !ends_value(input) && !begins_argument(input) {
                    input.parse::<TokenTree>()?;
                }
                input.parse::<Option<Token![;]>>()?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        errors.push(error);
    }
    keys
}

/// The given arguments, with or without a readable value.
#[derive(Default)]
pub(crate) struct Keys {
    given: Vec<Ident>,
    /// Arguments that another word was written for.
    meant: Vec<Ident>,
    /// `true` if there was a word that may stand for any of them.
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

/// A word where a key is expected.
struct Word {
    first: Ident,
    /// `max_attempts`, also when it is written `max-attempts`.
    name: String,
    written: TokenStream,
}

impl Word {
    fn parse(input: ParseStream<'_>, attribute: &str) -> syn::Result<Self> {
        let first = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(
                error.span(),
                format!("expected an argument of `{attribute}`"),
            )
        })?;
        let mut name = first.unraw().to_string();
        let mut written = first.to_token_stream();
        while input.peek(Token![-]) && input.peek2(Ident::peek_any) {
            let dash: Token![-] = input.parse()?;
            let next = input.call(Ident::parse_any)?;
            name = format!("{name}_{next}");
            written.extend(quote!(#dash #next));
        }
        Ok(Self {
            first,
            name,
            written,
        })
    }

    fn is_plain(&self) -> bool {
        self.first.unraw() == self.name
    }
}

fn one(
    input: ParseStream<'_>,
    syntax: &Syntax,
    errors: &mut Errors,
    keys: &mut Keys,
    read: &mut impl FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> syn::Result<()> {
    if let Some((key, ty)) = lone_type(input, syntax, keys)? {
        errors.on(
            &ty,
            format!(
                "`{}` takes this type by the name of the argument; write `{key} = {}`",
                syntax.attribute,
                show(&ty)
            ),
        );
        let key = Ident::new(key, proc_macro2::Span::call_site());
        let named = |input: ParseStream<'_>| read(&key, input, errors);
        let result = named.parse2(quote!(= #ty));
        let name = key.to_string();
        keys.meant.push(key);
        return result.and_then(|()| end(&name, input, errors));
    }
    let word = Word::parse(input, syntax.attribute).inspect_err(|_| keys.has_unknown = true)?;
    if !word.is_plain() || !syntax.knows(&word.name) {
        return other(input, syntax, errors, keys, read, &word);
    }
    let (key, name) = (word.first.unraw(), word.name);
    if keys.given.contains(&key) {
        return Err(syn::Error::new(
            key.span(),
            if word.first == key {
                format!("`{name}` is given twice; keep one of them")
            } else {
                format!(
                    "`{}` is `{name}`, which is given already; keep one of them",
                    word.first
                )
            },
        ));
    }
    keys.given.push(key.clone());
    read(&key, input, errors)?;
    end(&name, input, errors)
}

/// A word that is no argument. What it stands for is read anyway, or its absence would be a
/// mistake more.
fn other(
    input: ParseStream<'_>,
    syntax: &Syntax,
    errors: &mut Errors,
    keys: &mut Keys,
    read: &mut impl FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
    word: &Word,
) -> syn::Result<()> {
    let (meant, help) = meant(&word.name, ends_value(input), syntax);
    let shown = word.written.to_string().replace(' ', "");
    let error = syn::Error::new_spanned(
        &word.written,
        format!(
            "`{}` has no argument `{}`\n\nhelp: {help}",
            syntax.attribute,
            shown.trim_start_matches("r#")
        ),
    );
    let Some(meant) = meant else {
        keys.has_unknown = true;
        return Err(error);
    };
    if keys.find(meant).is_some() {
        return Err(error);
    }
    errors.push(error);
    let meant = Ident::new(meant, word.first.span());
    // A value of another form is no mistake more.
    let mut of_value = Errors::default();
    if read(&meant, input, &mut of_value).is_err() {
        value::whole(input)?;
    }
    of_value.forget();
    keys.meant.push(meant);
    end(&word.name, input, errors)
}

/// The type in `#[flow(Order)]`.
fn lone_type(
    input: ParseStream<'_>,
    syntax: &Syntax,
    keys: &Keys,
) -> syn::Result<Option<(&'static str, Type)>> {
    let mut open = syntax.type_arguments.iter();
    let Some(key) = open.find(|key| keys.find(key).is_none()) else {
        return Ok(None);
    };
    let ahead = input.fork();
    let Ok(ty) = ahead.parse::<Type>() else {
        return Ok(None);
    };
    let is_alone = ends_value(&ahead);
    let is_word = (Ident::parse_any.parse2(ty.to_token_stream()))
        .is_ok_and(|word| !word.to_string().starts_with(|c: char| c.is_uppercase()));
    if !is_alone || is_word {
        return Ok(None);
    }
    Ok(Some((key, input.parse()?)))
}

fn end(name: &str, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    if input.peek(Token![;]) {
        let semicolon: Token![;] = input.parse()?;
        errors.on(semicolon, "expected `,` between the arguments; write `,`");
        return Ok(());
    }
    if begins_argument(input) {
        let next = input.fork().call(Ident::parse_any)?;
        errors.at(
            next.span(),
            format!("expected `,` between the arguments; write `, {next}`"),
        );
        return Ok(());
    }
    Err(input.error(format!("expected `,` after the value of `{name}`")))
}

/// Returns whether nothing more of a value stands here. A `;` is no comma, but meant for one.
pub(super) fn ends_value(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,]) || input.peek(Token![;])
}

/// Returns whether `key =` or a flag stands here.
pub(super) fn begins_argument(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.call(Ident::parse_any).is_ok_and(|name| {
        let is_assigned =
            ahead.peek(Token![=]) && !ahead.peek(Token![==]) && !ahead.peek(Token![=>]);
        is_assigned || table::is_flag(&name.unraw().to_string())
    })
}

/// Returns the argument of the attribute that a word may stand for, and the message.
fn meant(word: &str, is_alone: bool, syntax: &Syntax) -> (Option<&'static str>, String) {
    let (other, others) = syntax.other;
    let of_other = |key: &str| others.iter().any(|argument| argument.key == key);
    if syntax.knows(word) {
        let meant = syntax.keys().find(|key| *key == word);
        return (meant, format!("did you mean `{word}`?"));
    }
    if of_other(word) {
        return (None, format!("`{word}` is an argument of `{other}`"));
    }
    // One slip in a longer word is no other word; a short one is one slip away from many.
    let slip = (syntax.keys()).find(|key| key.len() > 3 && is_misspelt(word, key));
    if let Some(meant) = slip {
        return (Some(meant), format!("did you mean `{meant}`?"));
    }
    if let Some(argument) = table::meant_by(word) {
        let Argument { key, remark, .. } = argument;
        if syntax.knows(key) {
            return (Some(key), format!("it is called `{key}` here{remark}"));
        }
        if of_other(key) {
            let help =
                format!("it is called `{key}` here{remark}, and is an argument of `{other}`");
            return (None, help);
        }
    }
    if let Some(meant) = nearest(word, syntax.keys()) {
        return (Some(meant), format!("did you mean `{meant}`?"));
    }
    let mut help = format!("the arguments are: {}", quoted(syntax.keys()));
    if let (true, Some(alone)) = (is_alone, syntax.alone) {
        help = format!("{help}; {}", alone.replace("{}", word));
    }
    (None, help)
}
