//! Delimited tokens.

use proc_macro2::{Delimiter, Group, TokenTree};
use syn::parse::{ParseStream, Parser};

/// The next group, out of the invisible delimiters of `macro_rules` too: syn sees through those in
/// all other places.
pub(super) fn group(input: ParseStream<'_>) -> syn::Result<Group> {
    let at = input.span();
    match input.parse()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            self::group.parse2(group.stream())
        }
        TokenTree::Group(group) => Ok(group),
        _ => Err(syn::Error::new(at, "expected delimited tokens")),
    }
}
