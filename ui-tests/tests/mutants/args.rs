//! The arguments of an attribute: `key = value, flag, ..`.

use proc_macro2::{Delimiter, TokenTree};
use syn::LitStr;

use crate::source::{Place, Word, place, word};

#[derive(Debug)]
pub struct Arg {
    pub key: Word,
    pub whole: Place,
    /// The `=`, which a flag does not have.
    pub equals: Option<Place>,
    pub value: Option<Value>,
}

#[derive(Debug)]
pub struct Value {
    pub at: Place,
    /// The content of a string.
    pub string: Option<String>,
    /// A value that is one name.
    pub word: Option<Word>,
    /// The names of a list.
    pub elements: Vec<Word>,
    /// The entries of an object.
    pub entries: Vec<Entry>,
}

#[derive(Debug)]
pub struct Entry {
    pub key: Word,
    pub colon: Place,
    pub value: Place,
    pub whole: Place,
}

pub fn args(text: &str, tokens: &[TokenTree]) -> Vec<Arg> {
    parts(tokens).map(|part| arg(text, part)).collect()
}

/// Returns the parts between commas.
fn parts(tokens: &[TokenTree]) -> impl Iterator<Item = &[TokenTree]> {
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    tokens.split(is_comma).filter(|part| !part.is_empty())
}

fn arg(text: &str, part: &[TokenTree]) -> Arg {
    let whole = around(part);
    let key = word(text, part[0].span());
    let value = part.get(2..).filter(|value| !value.is_empty());
    Arg {
        key,
        whole,
        equals: part.get(1).map(|equals| place(equals.span())),
        value: value.map(|tokens| read(text, tokens)),
    }
}

fn read(text: &str, tokens: &[TokenTree]) -> Value {
    let mut value = Value {
        at: around(tokens),
        string: None,
        word: None,
        elements: Vec::new(),
        entries: Vec::new(),
    };
    match tokens {
        [TokenTree::Literal(literal)] => {
            let string = syn::parse_str::<LitStr>(&literal.to_string());
            value.string = string.ok().map(|string| string.value());
        }
        [TokenTree::Ident(name)] => value.word = Some(word(text, name.span())),
        [TokenTree::Group(group)] => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            if group.delimiter() == Delimiter::Brace {
                value.entries = parts(&inner).map(|part| entry(text, part)).collect();
            } else {
                let elements = parts(&inner).map(|part| word(text, part[0].span()));
                value.elements = elements.collect();
            }
        }
        _ => {}
    }
    value
}

fn entry(text: &str, part: &[TokenTree]) -> Entry {
    Entry {
        key: word(text, part[0].span()),
        colon: place(part[1].span()),
        value: around(&part[2..]),
        whole: around(part),
    }
}

fn around(tokens: &[TokenTree]) -> Place {
    let (first, last) = (
        place(tokens[0].span()),
        place(tokens[tokens.len() - 1].span()),
    );
    first.start..last.end
}
