//! The output struct.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    codec,
    span::{ours_at, visible_at},
    visibility,
};
use crate::model::{Flow, Step, types::ends};

pub(super) fn item(flow: &Flow<'_>) -> TokenStream {
    let (name, vis) = (ours_at(&flow.output), visibility(flow));
    let doc = format!(
        " What a completed run of [`{}`] returns: the output of every step that no other step depends on.",
        flow.ident
    );
    let derives = &flow.args.output_derive;
    let derive = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
    let fields = leaves(flow).map(|(index, step, ty)| {
        // Placed at the type, where a derive that the type lacks is reported; no lint looks at
        // names of ours.
        let (at, _) = ends(&ty);
        let (public, field) = (visible_at(at), ours_at(step.ident));
        let mut what = format!(" The output of [`{}::{}`]", flow.step_enum, step.variant);
        if step.is_tolerant() {
            what.push_str(" with a `None` for each element that failed");
        }
        if flow.skips[index].may_be_skipped {
            let doc = format!("{what}, or `None` if it was skipped.");
            quote!(#[doc = #doc] #public #field: ::core::option::Option<#ty>)
        } else {
            let doc = format!("{what}.");
            quote!(#[doc = #doc] #public #field: #ty)
        }
    });
    quote! {
        #[doc = #doc]
        #derive
        #vis struct #name { #(#fields),* }
    }
}

/// `impl Debug`, unless the user derives it: a field shows its value if its type can, so that no
/// output needs a bound.
pub(super) fn debug(flow: &Flow<'_>) -> TokenStream {
    let mut derives = flow.args.output_derive.iter();
    let is_debug = |path: &syn::Path| (path.segments.last()).is_some_and(|it| it.ident == "Debug");
    if derives.any(is_debug) {
        return TokenStream::new();
    }
    let (name, fields) = (&flow.output, leaves(flow).map(|(_, step, _)| step.ident));
    let shown = fields.map(|field| {
        let text = syn::ext::IdentExt::unraw(field).to_string();
        quote!(.field(#text, __p::Shown(&self.#field).shown()))
    });
    let text = name.to_string();
    quote! {
        #[automatically_derived]
        impl __p::Debug for #name {
            fn fmt(&self, __f: &mut __p::Formatter<'_>) -> __p::FmtResult {
                __f.debug_struct(#text)#(#shown)*.finish()
            }
        }
    }
}

/// The fields as they are decoded.
pub(super) fn fields(flow: &Flow<'_>) -> impl Iterator<Item = TokenStream> {
    leaves(flow).map(|(index, step, _)| {
        let (field, slug) = (step.ident, &step.slug);
        let codec = codec::of_output(flow, index);
        if flow.skips[index].may_be_skipped {
            quote!(#field: __outputs.optional(#slug, #codec)?,)
        } else {
            quote!(#field: __outputs.required(#slug, #codec)?,)
        }
    })
}

fn leaves<'m>(flow: &'m Flow<'_>) -> impl Iterator<Item = (usize, &'m Step<'m>, TokenStream)> {
    let steps = flow.emitted().filter(|(index, _)| flow.is_leaf(*index));
    steps.filter_map(|(index, step)| Some((index, step, flow.output_type(index)?)))
}
