//! Names of steps that are written in attributes, once more as paths: editors then lead from them
//! to the function, and rename them with it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;

use super::span::function as path_of;
use crate::{
    model::{Flow, Step},
    parse::From,
};

pub(super) fn function(flow: &Flow<'_>) -> TokenStream {
    let steps = flow.steps.iter().filter_map(|step| {
        let names: Vec<TokenStream> = names(flow, step).collect();
        (!names.is_empty()).then(|| quote!(let _ = (#(#names,)*);))
    });
    quote!(fn __mentions() { #(#steps)* })
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
        target.is_callable().then(|| path_of(flow, &name))
    })
}
