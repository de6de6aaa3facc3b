//! The user's `impl`, with nothing changed but our attributes taken off.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{FnArg, GenericArgument, PathArguments, ReturnType, Signature, Type, parse_quote};

use crate::{
    model::types::{sized, unsized_part},
    parse::{FlowImpl, Item, StepFn},
};

/// A flow with mistakes may leave functions unused; that is no further mistake.
pub(crate) fn user_item(source: &FlowImpl, is_wrong: bool) -> TokenStream {
    let FlowImpl {
        attrs,
        generics,
        of_trait,
        self_ty,
        items,
        ..
    } = source;
    let is_foreign = of_trait.is_none() && source.own_type().is_none();
    let of_trait = of_trait.as_ref().map(|(name, token)| quote!(#name #token));
    let where_clause = &generics.where_clause;
    let quiet = is_wrong.then(|| quote!(#[allow(unused, dead_code, clippy::all)]));
    // They would write steps to which `#[flow]` seems to be missing.
    let left_out: Vec<&Item> = source.macros_for_steps().collect();
    let kept = |item: &&Item| {
        !left_out
            .iter()
            .any(|left_out| std::ptr::eq(*left_out, *item))
    };
    let readable = items.iter().filter(kept).filter_map(|item| match item {
        Item::Step(step) => Some(function(step)),
        Item::Other(other) => Some(other.tokens.clone()),
        Item::Unreadable { .. } => None,
    });
    // rustc drops what stands behind a syntax error in a block: so that one takes nothing else with
    // it, it gets one of its own.
    let unreadable = items.iter().filter_map(|item| match item {
        Item::Unreadable { tokens, .. } => Some(quote! {
            #quiet
            impl #generics #of_trait #self_ty #where_clause { #tokens }
        }),
        Item::Step(_) | Item::Other(_) => None,
    });
    // rustc would refuse an `impl` of another crate's type once more.
    if is_foreign {
        return quote! {
            #quiet
            const _: () = {
                struct __NoFlow;
                impl __NoFlow { #(#readable)* }
            };
        };
    }
    quote! {
        #(#attrs)*
        #quiet
        impl #generics #of_trait #self_ty #where_clause {
            #(#readable)*
        }
        #(#unreadable)*
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
    let sig = with_sizes(sig);
    // A step is `async` whether or not it awaits anything.
    quote!(#(#attrs)* #[allow(clippy::unused_async)] #vis #sig #body)
}

/// The signature with sizes for the types that have none: rustc would say the same once more, and
/// twice.
fn with_sizes(sig: &Signature) -> Signature {
    let mut sig = sig.clone();
    for input in &mut sig.inputs {
        if let FnArg::Typed(param) = input
            && let Some(ty) = unsized_part(&mut param.ty)
        {
            *ty = parse_quote!(&#ty);
        }
    }
    if let ReturnType::Type(_, ty) = &mut sig.output
        && let Some(output) = first_argument(ty).and_then(unsized_part)
    {
        *output = sized(output);
    }
    sig
}

/// `T` of `StepResult<T>`.
fn first_argument(ty: &mut Type) -> Option<&mut Type> {
    match ty {
        Type::Group(group) => first_argument(&mut group.elem),
        Type::Paren(paren) => first_argument(&mut paren.elem),
        Type::Path(path) => match &mut path.path.segments.last_mut()?.arguments {
            PathArguments::AngleBracketed(arguments) => match arguments.args.first_mut()? {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
