//! `#[step]` among the attributes of a function, and attributes that don't go with it.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::{Attribute, Meta, parse_quote};

use super::twice::{arguments, merged};
use crate::names::is_misspelt;

/// The attributes of a step.
pub(super) struct StepAttrs {
    /// `#[step(..)]`.
    pub(super) step: Attribute,
    /// `true` if it is another word, which may be meant for it.
    pub(super) is_misspelt: bool,
    /// All others.
    pub(super) kept: Vec<Attribute>,
    /// Those that make the function, or the step, disappear in some builds.
    pub(super) conditions: Vec<Attribute>,
    pub(super) mistakes: Vec<syn::Error>,
}

impl StepAttrs {
    /// `None` when none of the attributes makes a step of the function.
    pub(super) fn read(attrs: Vec<Attribute>) -> Option<Self> {
        let (ours, others): (Vec<_>, Vec<_>) = attrs.into_iter().partition(is_step);
        let (conditional, others): (Vec<_>, Vec<_>) =
            (others.into_iter()).partition(|attr| Conditional::of(attr).step.is_some());
        let mut ours = ours.into_iter();
        let mut kept = others;
        let mut is_misspelt = false;
        let mut mistakes: Vec<syn::Error> = Vec::new();
        let step = match (ours.next(), conditional.first()) {
            (Some(first), _) => ours.fold(first, |first, second| {
                mistakes.push(twice(&first, &second));
                let path = first.path();
                let arguments = merged(arguments(&first), arguments(&second));
                parse_quote!(#[#path(#arguments)])
            }),
            (None, Some(conditional)) => {
                let step = Conditional::of(conditional).step?;
                parse_quote!(#[#step])
            }
            (None, None) => {
                is_misspelt = true;
                kept.remove(kept.iter().position(may_be_step)?)
            }
        };
        let (entries, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(is_entry_point);
        mistakes.extend(entries.iter().map(entry_point));
        let mut conditions: Vec<Attribute> = conditional;
        conditions.extend(kept.iter().filter(|attr| is_condition(attr)).cloned());
        Some(Self {
            step,
            is_misspelt,
            kept,
            conditions,
            mistakes,
        })
    }
}

pub(super) fn is_step(attr: &Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|segment| segment.ident == "step")
}

fn may_be_step(attr: &Attribute) -> bool {
    let name = attr.path().get_ident();
    name.is_some_and(|name| is_misspelt(&name.to_string(), "step"))
}

fn twice(first: &Attribute, second: &Attribute) -> syn::Error {
    syn::Error::new_spanned(
        quote!(#first #second),
        "`#[step]` is given twice; write all arguments in one",
    )
}

/// `#[tokio::main]`, `#[test]` and their like write another function around the body.
fn is_entry_point(attr: &Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|segment| segment.ident == "main" || segment.ident == "test")
}

fn entry_point(attr: &Attribute) -> syn::Error {
    let name = crate::model::types::show(attr.path());
    syn::Error::new_spanned(
        attr,
        format!(
            "`#[{name}]` makes a program or a test of a function, and a step is neither: a worker awaits it; remove the attribute"
        ),
    )
}

/// Returns whether an attribute can take away what it stands on.
pub(super) fn is_condition(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg") || Conditional::of(attr).has_cfg
}

/// The attributes that a `cfg_attr` may become.
#[derive(Default)]
struct Conditional {
    has_cfg: bool,
    step: Option<TokenStream>,
}

impl Conditional {
    fn of(attr: &Attribute) -> Self {
        let mut found = Self::default();
        if let (true, Meta::List(list)) = (attr.path().is_ident("cfg_attr"), &attr.meta) {
            found.look(list.tokens.clone());
        }
        found
    }

    /// Looks at what follows the condition, without reading it: attributes have any form.
    fn look(&mut self, arguments: TokenStream) {
        let tokens: Vec<TokenTree> = arguments.into_iter().collect();
        let is_comma =
            |token: &TokenTree| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',');
        for attribute in tokens.split(is_comma).skip(1) {
            match (last_name(attribute), attribute.last()) {
                (Some(name), _) if name == "cfg" => self.has_cfg = true,
                (Some(name), _) if name == "step" => {
                    self.step = Some(attribute.iter().cloned().collect());
                }
                (Some(name), Some(TokenTree::Group(group))) if name == "cfg_attr" => {
                    self.look(group.stream());
                }
                _ => {}
            }
        }
    }
}

/// The last name of the path that an attribute begins with.
fn last_name(attribute: &[TokenTree]) -> Option<&Ident> {
    let path = attribute.iter().take_while(|token| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
    });
    path.filter_map(|token| match token {
        TokenTree::Ident(name) => Some(name),
        _ => None,
    })
    .last()
}

/// The function without `#[step]`, and without the `#[from(..)]` of its parameters. One that stayed
/// would complain that there is no `#[flow]`.
pub(super) fn removed(tokens: TokenStream) -> TokenStream {
    remove(tokens, false)
}

/// The same inside of all delimiters.
pub(crate) fn removed_everywhere(tokens: TokenStream) -> TokenStream {
    remove(tokens, true)
}

fn remove(tokens: TokenStream, everywhere: bool) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            kept.push(token);
            continue;
        };
        let is_attribute =
            matches!(kept.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
        let is_entered = everywhere || group.delimiter() == Delimiter::Parenthesis;
        if is_attribute && is_ours(&group) {
            kept.pop();
        } else if is_entered && holds_ours(group.stream()) {
            let inner = remove(group.stream(), everywhere);
            let mut inner = Group::new(group.delimiter(), inner);
            inner.set_span(group.span());
            kept.push(inner.into());
        } else {
            // As it was: rustc leaves out what it has said already, if it has the same places.
            kept.push(group.into());
        }
    }
    kept.into_iter().collect()
}

/// Returns `true` if delimiters hold something to remove.
fn holds_ours(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => is_ours(&group) || holds_ours(group.stream()),
        _ => false,
    })
}

fn is_ours(brackets: &Group) -> bool {
    let tokens: Vec<TokenTree> = brackets.stream().into_iter().collect();
    let has_arguments = matches!(tokens.last(), Some(TokenTree::Group(_)));
    let name = last_name(&tokens);
    brackets.delimiter() == Delimiter::Bracket
        && name.is_some_and(|name| name == "step" || (name == "from" && has_arguments))
}
