//! The output struct.

use proc_macro2::TokenStream;
use quote::quote;

use super::codec;
use crate::model::{Flow, Step};

pub(super) fn item(flow: &Flow<'_>) -> TokenStream {
    let name = &flow.output;
    let doc = format!(
        " What a completed run of [`{}`] returns: the output of every step that no other step depends on.",
        flow.ident
    );
    let derives = &flow.args.output_derive;
    let derive = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
    let fields = leaves(flow).map(|(index, step, ty)| {
        let (field, what) = (
            step.ident,
            format!(" The output of [`{}::{}`]", flow.step_enum, step.variant),
        );
        if flow.skips[index].may_be_skipped {
            let doc = format!("{what}, or `None` if it was skipped.");
            quote!(#[doc = #doc] pub #field: ::core::option::Option<#ty>)
        } else {
            let doc = format!("{what}.");
            quote!(#[doc = #doc] pub #field: #ty)
        }
    });
    quote! {
        #[doc = #doc]
        #[allow(dead_code, missing_debug_implementations, private_interfaces, unreachable_pub)]
        #derive
        pub struct #name { #(#fields),* }
    }
}

/// The fields as they are decoded.
pub(super) fn fields(flow: &Flow<'_>) -> impl Iterator<Item = TokenStream> {
    leaves(flow).map(|(index, step, _)| {
        let (field, slug, codec) = (step.ident, &step.slug, codec::name(step));
        if flow.skips[index].may_be_skipped {
            quote!(#field: __outputs.optional(#slug, &#codec())?,)
        } else {
            quote!(#field: __outputs.required(#slug, &#codec())?,)
        }
    })
}

fn leaves<'m>(flow: &'m Flow<'_>) -> impl Iterator<Item = (usize, &'m Step<'m>, TokenStream)> {
    let steps = flow.emitted().filter(|(index, _)| flow.is_leaf(*index));
    steps.filter_map(|(index, step)| Some((index, step, flow.output_type(index)?)))
}
