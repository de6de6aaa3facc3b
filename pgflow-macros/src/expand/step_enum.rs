//! The enum of steps.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Expr, ExprLit, Lit, Meta, MetaNameValue, ext::IdentExt};

use super::{span::ours_at, visibility};
use crate::{
    model::{Edge, Flow, MapOver, Step},
    names,
};

/// The enum and its name in the user's module.
///
/// It stands in a module of its own so that a second flow with the same `step_enum` is one error,
/// of the name. Next to it the derives would each be one more: they would all be of the first enum.
pub(super) fn item(flow: &Flow<'_>) -> TokenStream {
    let (name, module, vis) = (ours_at(&flow.step_enum), module(flow), visibility(flow));
    let doc = format!(" The steps of [`{}`].", flow.ident);
    let variants = flow.emitted().map(|(_, step)| {
        let (variant, place) = (&step.variant, place(flow, step));
        let docs = docs(flow, step);
        let gap = (!docs.is_empty()).then_some("");
        let docs = docs.iter().map(String::as_str).chain(gap);
        quote!(#(#[doc = #docs])* #[doc = #place] #variant)
    });
    // A name that stands for something else already is shown where it was chosen.
    let chosen_in = match &flow.args.step_enum {
        Some(chosen) => {
            let mut module = module.clone();
            module.set_span(Span::call_site().located_at(chosen.span()));
            module
        }
        None => module.clone(),
    };
    quote! {
        #vis use #chosen_in::#name;
        mod #module {
            // For links in the documentation.
            use super::*;
            #[doc = #doc]
            ///
            /// A new step is a new variant, which each `match` without a `_` has to name.
            #[derive(
                ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug,
                ::core::cmp::PartialEq, ::core::cmp::Eq, ::core::cmp::PartialOrd, ::core::cmp::Ord,
                ::core::hash::Hash,
            )]
            pub enum #name { #(#variants),* }
        }
    }
}

/// The path of the enum.
pub(super) fn path(flow: &Flow<'_>) -> TokenStream {
    let (module, name) = (module(flow), &flow.step_enum);
    quote!(#module::#name)
}

/// The first paragraph of the step's documentation, as it reads outside of the `impl`, and the
/// links that it may refer to.
///
/// No more than that: rustdoc would run the examples twice.
fn docs(flow: &Flow<'_>, step: &Step<'_>) -> Vec<String> {
    let lines: Vec<String> = step
        .docs()
        .filter_map(|attr| match &attr.meta {
            Meta::NameValue(MetaNameValue {
                value:
                    Expr::Lit(ExprLit {
                        lit: Lit::Str(text),
                        ..
                    }),
                ..
            }) => Some(text.value()),
            _ => None,
        })
        .flat_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let is_blank = |line: &&String| line.trim().is_empty();
    let is_target = |line: &&String| line.trim_start().starts_with('[') && line.contains("]:");
    let (start, rest) = (lines.iter().skip_while(is_blank), lines.iter());
    let summary: Vec<&String> = start.take_while(|line| !is_blank(line)).collect();
    let has_fence = |line: &&String| line.contains("```") || line.contains("~~~");
    if summary.iter().any(has_fence) {
        return Vec::new();
    }
    let targets: Vec<&String> = rest
        .skip_while(is_blank)
        .skip(summary.len())
        .filter(is_target)
        .collect();
    let gap = String::new();
    let gap = (!targets.is_empty()).then_some(&gap);
    let name = flow.ident.to_string();
    (summary.into_iter().chain(gap).chain(targets))
        .map(|line| {
            line.replace("Self::", &format!("{name}::"))
                .replace("[`Self`]", &format!("[`{name}`]"))
        })
        .collect()
}

/// Named by a step too: a second flow of the same type is then refused for being one, and not for
/// each of its names as well.
fn module(flow: &Flow<'_>) -> Ident {
    let ty = names::slug(&flow.ident.unraw().to_string());
    match flow.emitted().next() {
        Some((_, first)) => format_ident!("steps_of_{ty}_from_{}", first.name),
        None => format_ident!("steps_of_{ty}"),
    }
}

/// Describes the place of the step in the graph.
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
    let failed = if step.is_tolerant() {
        " One that fails is `None`."
    } else {
        ""
    };
    match step.map {
        Some(MapOver::Input(_)) => {
            format!(" Runs once for each element of the flow's input.{failed}")
        }
        Some(_) => format!(" Runs once for each element of {dependencies}.{failed}"),
        None if dependencies.is_empty() => " Depends on nothing.".to_owned(),
        None => format!(" Depends on {dependencies}."),
    }
}

/// `impl StepId`, and the slug as the text of a step.
pub(super) fn step_id(flow: &Flow<'_>) -> TokenStream {
    let name = path(flow);
    let variants: Vec<&Ident> = flow.emitted().map(|(_, step)| &step.variant).collect();
    // An enum without variants is no number.
    let index = if variants.is_empty() {
        quote!(match self {})
    } else {
        quote!(self as __p::usize)
    };
    quote! {
        #[automatically_derived]
        impl __p::StepId for #name {
            const ALL: &'static [Self] = &[#(Self::#variants),*];
            fn slug(self) -> &'static __p::str { __STEPS[__p::StepId::index(self)].slug }
            fn index(self) -> __p::usize { #index }
        }
        #[automatically_derived]
        impl __p::Display for #name {
            fn fmt(&self, __f: &mut __p::Formatter<'_>) -> __p::FmtResult {
                __f.pad(__p::StepId::slug(*self))
            }
        }
    }
}
