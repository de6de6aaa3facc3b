//! The user's `impl`, with nothing changed but our attributes taken off.

use proc_macro2::TokenStream;
use quote::quote;

use crate::parse::{FlowImpl, Item, StepFn};

/// A flow with mistakes may leave functions unused; that is no further mistake.
pub(crate) fn user_item(source: &FlowImpl, is_wrong: bool) -> TokenStream {
    let FlowImpl {
        attrs,
        generics,
        of_trait,
        self_ty,
        items,
    } = source;
    let of_trait = of_trait.as_ref().map(|(name, token)| quote!(#name #token));
    let where_clause = &generics.where_clause;
    let quiet = is_wrong.then(|| quote!(#[allow(unused, dead_code, clippy::all)]));
    let items = items.iter().map(|item| match item {
        Item::Step(step) => function(step),
        Item::Unreadable { tokens, .. } | Item::Other(tokens) => tokens.clone(),
    });
    quote! {
        #(#attrs)*
        #quiet
        impl #generics #of_trait #self_ty #where_clause {
            #(#items)*
        }
    }
}

fn function(step: &StepFn) -> TokenStream {
    let StepFn {
        attrs,
        vis,
        sig,
        body,
        ..
    } = step;
    // A step is `async` whether or not it awaits anything.
    quote!(#(#attrs)* #[allow(clippy::unused_async)] #vis #sig #body)
}
