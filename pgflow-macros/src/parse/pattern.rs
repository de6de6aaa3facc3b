//! The object literals of `if` and `if_not`: JSON with names as keys, as in JavaScript.

use std::{fmt::Write, iter::Peekable};

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree, token_stream};
use syn::{Lit, LitFloat, LitInt, LitStr, ext::IdentExt, parse::ParseStream, token::Brace};

use super::value;
use crate::errors::Errors;

/// A condition.
pub(crate) struct Pattern {
    /// `if` or `if_not`.
    pub(crate) argument: Ident,
    pub(crate) entries: Vec<Entry>,
}

/// A key of the object itself, and its value as JSON text.
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Span,
    value: String,
}

impl Pattern {
    /// The object as JSON text; `rename` says what a key is called in the database.
    pub(crate) fn json<'k>(&'k self, rename: impl Fn(&'k str) -> &'k str) -> String {
        let entries = self
            .entries
            .iter()
            .map(|entry| format!("{}:{}", quote(rename(&entry.key)), entry.value));
        format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
    }

    /// A pattern that can't be read is reported and then taken as empty: the step still has a condition.
    pub(super) fn parse(
        argument: &Ident,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<Self> {
        value::equals(argument, input, "{ plan: \"premium\" }")?;
        let mut pattern = Self {
            argument: argument.clone(),
            entries: Vec::new(),
        };
        if input.peek(Brace) {
            let object: Group = input.parse()?;
            match entries(object.stream()) {
                Ok(entries) => pattern.entries = entries,
                Err(error) => errors.push(error),
            }
        } else {
            let written = super::value::whole(input)?;
            let help = match equality(&written) {
                Some((key, value)) => {
                    format!(", not an expression; write `{argument} = {{ {key}: {value} }}`")
                }
                None => format!(", such as `{argument} = {{ plan: \"premium\" }}`"),
            };
            errors.on(written, format!("`{argument}` takes an object{help}"));
        }
        Ok(pattern)
    }
}

/// The key and the value of `key == value` or `input.key == value`.
fn equality(written: &TokenStream) -> Option<(Ident, TokenTree)> {
    let tokens: Vec<TokenTree> = written.clone().into_iter().collect();
    let [
        left @ ..,
        TokenTree::Punct(first),
        TokenTree::Punct(second),
        value,
    ] = &tokens[..]
    else {
        return None;
    };
    let key = match left {
        [TokenTree::Ident(key)] => key,
        [
            TokenTree::Ident(input),
            TokenTree::Punct(dot),
            TokenTree::Ident(key),
        ] if input == "input" && dot.as_char() == '.' => key,
        _ => return None,
    };
    let is_equality = first.as_char() == '=' && second.as_char() == '=';
    let is_value = match value {
        TokenTree::Literal(_) => true,
        TokenTree::Ident(word) => word == "true" || word == "false",
        TokenTree::Group(_) | TokenTree::Punct(_) => false,
    };
    (is_equality && is_value).then(|| (key.clone(), value.clone()))
}

const VALUE: &str =
    "expected a JSON value: a string, a number, `true`, `false`, `null`, `[..]` or `{ .. }`";

type Tokens = Peekable<token_stream::IntoIter>;

fn entries(object: TokenStream) -> syn::Result<Vec<Entry>> {
    let mut tokens = object.into_iter().peekable();
    let mut entries: Vec<Entry> = Vec::new();
    while let Some(token) = tokens.next() {
        let (key, at) = (key(&token)?, token.span());
        if entries.iter().any(|other| other.key == key) {
            return Err(syn::Error::new(
                at,
                format!("key `{key}` is given twice; each key is given once; remove one"),
            ));
        }
        colon(&mut tokens, &key, at)?;
        let value = value(&mut tokens, at)?;
        comma(&mut tokens, "the entries of an object")?;
        entries.push(Entry { key, at, value });
    }
    Ok(entries)
}

fn elements(array: &Group) -> syn::Result<String> {
    let mut tokens = array.stream().into_iter().peekable();
    let mut elements = Vec::new();
    while tokens.peek().is_some() {
        elements.push(value(&mut tokens, array.span())?);
        comma(&mut tokens, "the elements of an array")?;
    }
    Ok(format!("[{}]", elements.join(",")))
}

/// `after` is where an absent value is reported.
fn value(tokens: &mut Tokens, after: Span) -> syn::Result<String> {
    let Some(token) = tokens.next() else {
        return Err(syn::Error::new(after, VALUE));
    };
    match &token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let object = Pattern {
                argument: Ident::new("object", group.span()),
                entries: entries(group.stream())?,
            };
            return Ok(object.json(|key| key));
        }
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            return elements(group);
        }
        TokenTree::Ident(ident) => {
            let word = ident.to_string();
            if matches!(word.as_str(), "true" | "false" | "null") {
                return Ok(word);
            }
            if ends_value(tokens.peek()) {
                return Err(syn::Error::new(token.span(), bare_word(&word)));
            }
        }
        TokenTree::Punct(punct) if punct.as_char() == '-' => {
            if let Some(TokenTree::Literal(literal)) = tokens.next() {
                return number(&Lit::new(literal), "-");
            }
        }
        TokenTree::Literal(literal) => {
            return match Lit::new(literal.clone()) {
                Lit::Str(literal) => Ok(quote(&string(&literal)?)),
                Lit::Char(character) => Err(syn::Error::new(
                    literal.span(),
                    format!(
                        "a string stands in double quotes; write `\"{}\"`",
                        character.value()
                    ),
                )),
                other => number(&other, ""),
            };
        }
        TokenTree::Group(_) | TokenTree::Punct(_) => {}
    }
    Err(syn::Error::new(token.span(), VALUE))
}

/// Whether nothing more stands there of a value.
fn ends_value(next: Option<&TokenTree>) -> bool {
    match next {
        None => true,
        Some(TokenTree::Punct(punct)) => punct.as_char() == ',',
        Some(_) => false,
    }
}

fn bare_word(word: &str) -> String {
    let meant = match word.to_lowercase().as_str() {
        "true" => "true".to_owned(),
        "false" => "false".to_owned(),
        "null" | "none" => "null".to_owned(),
        _ => format!("\"{word}\""),
    };
    format!("`{word}` is no JSON value; write `{meant}`")
}

fn string(literal: &LitStr) -> syn::Result<String> {
    let string = literal.value();
    if string.contains('\0') {
        return Err(syn::Error::new(
            literal.span(),
            "Postgres can't store the character U+0000; remove it from the condition",
        ));
    }
    Ok(string)
}

/// A JSON string.
fn quote(string: &str) -> String {
    let mut text = String::from('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            // Writing to a string does not fail.
            control if u32::from(control) < 0x20 => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

fn number(literal: &Lit, sign: &str) -> syn::Result<String> {
    let number = match literal {
        Lit::Int(int) if int.suffix().is_empty() => integer(int, sign),
        Lit::Float(float) if float.suffix().is_empty() => fraction(float, sign),
        other => return Err(syn::Error::new(other.span(), VALUE)),
    };
    number.ok_or_else(|| {
        syn::Error::new(
            literal.span(),
            "this number can't be kept exactly; use an integer of at most 64 bits, a smaller fraction, or a string on both sides",
        )
    })
}

fn integer(literal: &LitInt, sign: &str) -> Option<String> {
    let text = format!("{sign}{}", literal.base10_digits());
    let fits = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    fits.then_some(text)
}

fn fraction(literal: &LitFloat, sign: &str) -> Option<String> {
    /// Beyond this, neighbouring numbers of 64 bits are more than 1 apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: f64 = literal.base10_parse().ok()?;
    // `Debug` always writes a fraction or an exponent, and both are JSON.
    (number < EXACT).then(|| format!("{sign}{number:?}"))
}

fn key(token: &TokenTree) -> syn::Result<String> {
    match token {
        TokenTree::Ident(ident) => return Ok(ident.unraw().to_string()),
        TokenTree::Literal(literal) => {
            if let Lit::Str(literal) = Lit::new(literal.clone()) {
                return string(&literal);
            }
        }
        TokenTree::Group(_) | TokenTree::Punct(_) => {}
    }
    Err(syn::Error::new(token.span(), "a key is a name or a string"))
}

fn colon(tokens: &mut Tokens, key: &str, after: Span) -> syn::Result<()> {
    match tokens.peek() {
        Some(TokenTree::Punct(punct)) if punct.as_char() == ':' => {
            tokens.next();
            Ok(())
        }
        other => Err(syn::Error::new(
            other.map_or(after, TokenTree::span),
            format!("expected `:` after the key `{key}`"),
        )),
    }
}

/// A comma or the end.
fn comma(tokens: &mut Tokens, between: &str) -> syn::Result<()> {
    match tokens.next() {
        None => Ok(()),
        Some(TokenTree::Punct(punct)) if punct.as_char() == ',' => Ok(()),
        Some(other) => Err(syn::Error::new(
            other.span(),
            format!("expected `,` between {between}"),
        )),
    }
}
