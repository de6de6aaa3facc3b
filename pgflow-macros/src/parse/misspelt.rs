//! Functions under an attribute that looks like `#[step]` with a slip.
//!
//! There may be such an attribute, and only rustc knows. So a function is taken for a step if
//! another step names it, or there is no other one; else it stays as it is, and rustc says whether
//! there is no such attribute and proposes `step`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ext::IdentExt};

use super::{
    Item,
    item::{Other, OtherKind},
};
use crate::model::types::show;

/// Decides about each of the items at these positions, which are given with their tokens.
pub(super) fn settle(items: &mut [Item], mut doubtful: Vec<(usize, TokenStream)>) {
    // A function that is named makes those steps that it names itself.
    while let Some(next) = (doubtful.iter()).position(|(at, _)| is_named(items, &doubtful, *at)) {
        let (at, _) = doubtful.swap_remove(next);
        if let Item::Step(step) = &mut items[at] {
            let name = step.sig.ident.unraw();
            step.mistakes.push(mistake(&step.attr, &name));
        }
    }
    for (at, tokens) in doubtful {
        if let Item::Step(step) = &items[at] {
            let kind = OtherKind::Function(step.sig.ident.clone());
            items[at] = Item::Other(Other { kind, tokens });
        }
    }
}

fn mistake(attr: &Attribute, name: &Ident) -> syn::Error {
    syn::Error::new_spanned(
        attr.path(),
        format!(
            "`{name}` seems to be a step, and has `#[{}]` instead of `#[step]`\n\nhelp: did you mean `step`?",
            show(attr.path())
        ),
    )
}

/// Returns `true` if the attribute of a step names a function, or if none could.
fn is_named(items: &[Item], doubtful: &[(usize, TokenStream)], at: usize) -> bool {
    let Item::Step(function) = &items[at] else {
        return false;
    };
    let name = function.sig.ident.unraw();
    let is_doubtful = |position: usize| doubtful.iter().any(|(at, _)| *at == position);
    let sure = items
        .iter()
        .enumerate()
        .filter_map(|(position, item)| match item {
            Item::Step(step) if !is_doubtful(position) => Some(step),
            _ => None,
        });
    let mut attrs = sure.map(|step| step.attr.meta.to_token_stream()).peekable();
    attrs.peek().is_none() || attrs.any(|attr| holds(attr, &name))
}

fn holds(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident.unraw() == *name,
        TokenTree::Group(group) => holds(group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}
