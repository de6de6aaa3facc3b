//! Names that are written in attributes, once more as paths: editors then lead from them to the function or to
//! the documentation of the argument, and rename them with it.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;

use super::span::function as path_of;
use crate::{
    model::{Flow, Step},
    parse::{From, Keys},
};

pub(super) fn function(flow: &Flow<'_>) -> TokenStream {
    let steps = flow.steps.iter().flat_map(|step| {
        let keys = keys(&step.args.keys, "step");
        names(flow, step).chain(keys)
    });
    let keys = keys(&flow.args.keys, "flow");
    quote!(fn __mentions() { #(#steps)* #(#keys)* })
}

/// The steps that a step names.
fn names<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>) -> impl Iterator<Item = TokenStream> {
    let edges = step
        .edges
        .iter()
        .filter_map(|edge| Some((edge.step()?, &edge.at)));
    let from = step.source.from.iter().filter_map(|from| match from {
        From::Name(name) => {
            let target = flow
                .steps
                .iter()
                .position(|step| name.unraw() == step.name)?;
            Some((target, name))
        }
        From::Absent | From::Malformed(_) => None,
    });
    edges.chain(from).filter_map(|(target, at)| {
        let target = &flow.steps[target];
        // The function's own name, because it may be raw.
        let mut name = target.ident.clone();
        name.set_span(at.span());
        let path = path_of(flow, &name);
        target.is_callable().then(|| quote!(let _ = #path;))
    })
}

fn keys(keys: &Keys, attribute: &str) -> impl Iterator<Item = TokenStream> {
    let module = Ident::new(attribute, proc_macro2::Span::call_site());
    // `if` and `crate` are no names of constants.
    let keys = keys.iter().filter(|key| *key != "if" && *key != "crate");
    keys.map(move |key| quote!(let _ = __p::arguments::#module::#key;))
}
