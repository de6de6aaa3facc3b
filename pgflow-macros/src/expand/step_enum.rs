//! The enum of steps.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;

use crate::{
    model::{Edge, Flow, MapOver, Step},
    names,
};

/// The enum and its name in the user's module.
///
/// It stands in a module of its own so that a second flow with the same `step_enum` is one error, of the name. Next to it the
/// derives would each be one more: they would all be of the first enum.
pub(super) fn item(flow: &Flow<'_>) -> TokenStream {
    let (name, shown, doc) = (
        own_name(flow),
        &flow.step_enum,
        format!(" The steps of [`{}`].", flow.ident),
    );
    let import = if name == *shown {
        quote!(#name)
    } else {
        quote!(#name as #shown)
    };
    let module = module(flow);
    let variants = flow.emitted().map(|(_, step)| {
        let (variant, docs, place) = (&step.variant, step.docs(), place(flow, step));
        let gap = step.docs().next().map(|_| quote!(#[doc = ""]));
        quote!(#(#docs)* #gap #[doc = #place] #variant)
    });
    quote! {
        #[allow(unreachable_pub)]
        pub use #module::#import;
        mod #module {
            // For links in the documentation.
            #[allow(unused_imports)]
            use super::*;
            #[doc = #doc]
            #[derive(
                ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug,
                ::core::cmp::PartialEq, ::core::cmp::Eq, ::core::hash::Hash,
            )]
            pub enum #name { #(#variants),* }
        }
    }
}

/// The path of the enum.
pub(super) fn path(flow: &Flow<'_>) -> TokenStream {
    let (module, name) = (module(flow), own_name(flow));
    quote!(#module::#name)
}

/// The name in messages of rustc, which can't tell one `Step` from another: they would call it by its hidden module.
fn own_name(flow: &Flow<'_>) -> Ident {
    if flow.args.step_enum.is_some() {
        flow.step_enum.clone()
    } else {
        format_ident!("{}Step", flow.ident.unraw(), span = Span::call_site())
    }
}

/// Named by a step too: a second flow of the same type is then refused for being one, and not for each of its names as well.
fn module(flow: &Flow<'_>) -> Ident {
    let ty = names::slug(&flow.ident.unraw().to_string());
    match flow.emitted().next() {
        Some((_, first)) => format_ident!("steps_of_{ty}_from_{}", first.name),
        None => format_ident!("steps_of_{ty}"),
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
        Some(MapOver::Input(_)) => " Runs once for each element of the flow's input.".to_owned(),
        Some(_) => format!(" Runs once for each element of {dependencies}."),
        None if dependencies.is_empty() => " Depends on nothing.".to_owned(),
        None => format!(" Depends on {dependencies}."),
    }
}

/// `impl StepId`.
pub(super) fn step_id(flow: &Flow<'_>) -> TokenStream {
    let name = path(flow);
    let (variants, slugs): (Vec<&Ident>, Vec<&str>) = flow
        .emitted()
        .map(|(_, step)| (&step.variant, step.slug.as_str()))
        .unzip();
    // A match without arms is only possible by value.
    let slug = if variants.is_empty() {
        quote!(match self {})
    } else {
        quote!(match self { #(Self::#variants => #slugs,)* })
    };
    let index = if variants.is_empty() {
        quote!(match self {})
    } else {
        quote!(self as usize)
    };
    quote! {
        #[automatically_derived]
        impl __p::StepId for #name {
            const ALL: &'static [Self] = &[#(Self::#variants),*];
            fn slug(self) -> &'static str { #slug }
            fn index(self) -> usize { #index }
        }
    }
}
