//! A right flow, and where its parts stand in its text.

use std::ops::Range;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, FnArg, ImplItem, ImplItemFn, Item, Pat, PathArguments, ReturnType, Type,
    spanned::Spanned,
};

use crate::args::{Arg, Value, args};

pub type Place = Range<usize>;

/// A name, and where it stands.
#[derive(Debug, Clone)]
pub struct Word {
    pub text: String,
    pub at: Place,
}

#[derive(Debug)]
pub struct Source {
    pub name: &'static str,
    pub text: &'static str,
    pub self_ty: Word,
    /// `#[flow(..)]`.
    pub attr: Place,
    pub args: Vec<Arg>,
    /// Between the braces of the `impl`.
    pub body: Place,
    pub whole_impl: Place,
    pub steps: Vec<Step>,
    /// The constants and functions of the `impl` that are no steps.
    pub others: Vec<Place>,
    pub types: Vec<Named>,
}

/// A type that the file defines.
#[derive(Debug)]
pub struct Named {
    pub name: Word,
    pub whole: Place,
    pub derives: Vec<Word>,
    /// `true` if another type of the file has it as a field.
    pub is_part: bool,
}

#[derive(Debug)]
pub struct Step {
    pub name: Word,
    /// From its first attribute to the end of its body.
    pub whole: Place,
    pub attr: Place,
    pub args: Vec<Arg>,
    pub async_token: Place,
    pub fn_token: Place,
    /// Between the parentheses.
    pub inputs: Place,
    pub params: Vec<Param>,
    pub returns: Returns,
    pub body: Place,
}

#[derive(Debug)]
pub struct Returns {
    /// With the arrow.
    pub whole: Place,
    pub ty: Place,
    /// `StepResult` of `StepResult<T>`.
    pub result: Word,
    /// The `T`, and an `E` if there is one.
    pub arguments: Vec<Place>,
    pub ok: String,
}

#[derive(Debug)]
pub struct Param {
    pub whole: Place,
    /// `#[from(..)]`, and its name.
    pub from: Option<(Place, Word)>,
    pub pattern: Place,
    /// Absent where the parameter is a pattern.
    pub name: Option<Word>,
    pub ty: Place,
    pub type_text: String,
}

impl Source {
    pub fn parse(name: &'static str, text: &'static str) -> Self {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let flow = (file.items.iter())
            .find_map(|item| match item {
                Item::Impl(item) => attribute(&item.attrs, "flow").map(|attr| (item, attr)),
                _ => None,
            })
            .expect("an impl with `#[flow]`");
        let (block, attr) = flow;
        let mut steps = Vec::new();
        let mut others = Vec::new();
        for item in &block.items {
            match item {
                ImplItem::Fn(function) if attribute(&function.attrs, "step").is_some() => {
                    steps.push(step(text, function));
                }
                other => others.push(place(other.span())),
            }
        }
        Self {
            name,
            text,
            self_ty: word(text, block.self_ty.span()),
            attr: place(attr.span()),
            args: args(text, &arguments(attr)),
            body: end(block.brace_token.span.open())..start(block.brace_token.span.close()),
            whole_impl: place(block.span()),
            steps,
            others,
            types: types(text, &file.items),
        }
    }

    pub fn at(&self, place: &Place) -> &'static str {
        &self.text[place.clone()]
    }

    pub fn arg(&self, key: &str) -> Option<&Arg> {
        self.args.iter().find(|arg| arg.key.text == key)
    }

    /// The text of an argument that is a type.
    pub fn arg_text(&self, key: &str) -> Option<&str> {
        Some(self.at(&self.arg(key)?.value.as_ref()?.at))
    }

    pub fn step(&self, name: &str) -> Option<&Step> {
        let name = unraw(name);
        self.steps.iter().find(|step| step.unraw() == name)
    }
}

impl Step {
    pub fn unraw(&self) -> &str {
        unraw(&self.name.text)
    }

    pub fn arg(&self, key: &str) -> Option<&Arg> {
        self.args.iter().find(|arg| arg.key.text == key)
    }

    /// The elements of `depends_on`.
    pub fn depends_on(&self) -> &[Word] {
        match self.value("depends_on") {
            Some(Value { elements, .. }) => elements,
            None => &[],
        }
    }

    pub fn map(&self) -> Option<&Word> {
        self.value("map")?.word.as_ref()
    }

    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.value(key)?.string.as_deref()
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.arg(key)?.value.as_ref()
    }
}

impl Param {
    /// Returns the name that it is bound to, as the attribute reads it.
    pub fn binding(&self) -> &str {
        match (&self.from, &self.name) {
            (Some((_, name)), _) | (None, Some(name)) => unraw(&name.text).trim_start_matches('_'),
            (None, None) => "",
        }
    }
}

pub fn unraw(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

fn step(text: &str, function: &ImplItemFn) -> Step {
    let attr = attribute(&function.attrs, "step").expect("it was found");
    let sig = &function.sig;
    Step {
        name: word(text, sig.ident.span()),
        whole: place(function.span()),
        attr: place(attr.span()),
        args: args(text, &arguments(attr)),
        async_token: place(sig.asyncness.expect("a step is async").span()),
        fn_token: place(sig.fn_token.span),
        inputs: end(sig.paren_token.span.open())..start(sig.paren_token.span.close()),
        params: sig.inputs.iter().map(|input| param(text, input)).collect(),
        returns: returns(text, &sig.output),
        body: place(function.block.span()),
    }
}

fn param(text: &str, input: &FnArg) -> Param {
    let FnArg::Typed(typed) = input else {
        panic!("a step takes no `self`");
    };
    let from = attribute(&typed.attrs, "from").map(|attr| {
        let name = arguments(attr).into_iter().next().expect("a name");
        (place(attr.span()), word(text, name.span()))
    });
    let name = match &*typed.pat {
        Pat::Ident(pattern) => Some(word(text, pattern.ident.span())),
        _ => None,
    };
    let ty = place(typed.ty.span());
    Param {
        whole: place(input.span()),
        from,
        pattern: place(typed.pat.span()),
        name,
        type_text: text[ty.clone()].to_owned(),
        ty,
    }
}

fn returns(text: &str, output: &ReturnType) -> Returns {
    let ReturnType::Type(_, ty) = output else {
        panic!("a step returns a result");
    };
    let Type::Path(path) = &**ty else {
        panic!("the path of a result was expected");
    };
    let last = path.path.segments.last().expect("a name");
    let PathArguments::AngleBracketed(list) = &last.arguments else {
        panic!("a result with its output was expected");
    };
    let arguments: Vec<Place> = list.args.iter().map(|arg| place(arg.span())).collect();
    Returns {
        whole: place(output.span()),
        ty: place(ty.span()),
        result: word(text, last.ident.span()),
        ok: text[arguments[0].clone()].to_owned(),
        arguments,
    }
}

fn types(text: &str, items: &[Item]) -> Vec<Named> {
    let structs = items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item),
        _ => None,
    });
    let structs: Vec<_> = structs.collect();
    let fields: Vec<&str> = (structs.iter().flat_map(|item| &item.fields))
        .map(|field| &text[place(field.ty.span())])
        .collect();
    let named = structs.iter().map(|item| Named {
        name: word(text, item.ident.span()),
        whole: place(item.span()),
        derives: (attribute(&item.attrs, "derive").into_iter())
            .flat_map(arguments)
            .filter(|token| matches!(token, TokenTree::Ident(_)))
            .map(|token| word(text, token.span()))
            .collect(),
        is_part: fields
            .iter()
            .any(|ty| has_word(ty, &item.ident.to_string())),
    });
    named.collect()
}

/// Returns whether an identifier stands in a text.
pub fn has_word(text: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).any(|(at, _)| {
        let after = at + word.len();
        !text[..at].ends_with(is_part) && !text[after..].starts_with(is_part)
    })
}

fn attribute<'a>(attrs: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attrs.iter().find(|attr| attr.path().is_ident(name))
}

fn arguments(attr: &Attribute) -> Vec<TokenTree> {
    let tokens = match &attr.meta {
        syn::Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    };
    tokens.into_iter().collect()
}

pub fn place(span: Span) -> Place {
    span.byte_range()
}

fn start(span: Span) -> usize {
    place(span).start
}

fn end(span: Span) -> usize {
    place(span).end
}

pub fn word(text: &str, span: Span) -> Word {
    let at = place(span);
    Word {
        text: text[at.clone()].to_owned(),
        at,
    }
}
