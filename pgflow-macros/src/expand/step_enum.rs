//! The enum of steps.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::model::{Edge, Flow, MapOver, Step};

pub(super) fn item(flow: &Flow<'_>) -> TokenStream {
    let (name, doc) = (&flow.step_enum, format!("The steps of [`{}`].", flow.ident));
    let variants = flow.emitted().map(|(_, step)| {
        let (variant, docs, place) = (&step.variant, step.docs(), place(flow, step));
        quote!(#(#docs)* #[doc = ""] #[doc = #place] #variant)
    });
    quote! {
        #[doc = #doc]
        #[allow(unreachable_pub)]
        #[derive(
            ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug,
            ::core::cmp::PartialEq, ::core::cmp::Eq, ::core::hash::Hash,
        )]
        pub enum #name { #(#variants),* }
    }
}

/// Where the step stands in the graph.
fn place(flow: &Flow<'_>, step: &Step<'_>) -> String {
    let dependencies: Vec<String> = step
        .edges
        .iter()
        .filter_map(Edge::step)
        .map(|dependency| {
            format!(
                "[`{0}`]({1}::{0})",
                flow.steps[dependency].variant, flow.step_enum
            )
        })
        .collect();
    let dependencies = dependencies.join(", ");
    match step.map {
        Some(MapOver::Input(_)) => "Runs once for each element of the flow's input.".to_owned(),
        Some(_) => format!("Runs once for each element of {dependencies}."),
        None if dependencies.is_empty() => "Depends on nothing.".to_owned(),
        None => format!("Depends on {dependencies}."),
    }
}

/// `impl StepId`.
pub(super) fn step_id(flow: &Flow<'_>) -> TokenStream {
    let name = &flow.step_enum;
    let (variants, slugs): (Vec<&Ident>, Vec<&str>) = flow
        .emitted()
        .map(|(_, step)| (&step.variant, step.slug.as_str()))
        .unzip();
    // A match without arms is only possible by value.
    let slug = if variants.is_empty() {
        quote!(match self {})
    } else {
        quote!(match self { #(#name::#variants => #slugs,)* })
    };
    let index = if variants.is_empty() {
        quote!(match self {})
    } else {
        quote!(self as usize)
    };
    quote! {
        #[automatically_derived]
        impl __p::StepId for #name {
            const ALL: &'static [Self] = &[#(#name::#variants),*];
            fn slug(self) -> &'static str { #slug }
            fn index(self) -> usize { #index }
        }
    }
}
