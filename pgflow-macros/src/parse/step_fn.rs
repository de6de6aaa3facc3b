//! A function under `#[step]`.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, FnArg, Signature, Visibility, ext::IdentExt, parse::ParseStream};

use super::{StepArgs, item::is_step};

/// The function with `#[step]` and `#[from(..)]` taken off.
pub(crate) struct StepFn {
    pub(crate) attrs: Vec<Attribute>,
    pub(super) attr: Attribute,
    /// `#[step]` again.
    pub(super) repeated: Vec<Attribute>,
    pub(crate) args: StepArgs,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    /// For each of the signature's inputs.
    pub(crate) from: Vec<From>,
    pub(crate) body: TokenStream,
}

/// `#[from(..)]` of a parameter.
pub(crate) enum From {
    Absent,
    Name(Ident),
    Malformed(Box<Attribute>),
}

impl StepFn {
    pub(super) fn parse(input: ParseStream<'_>) -> Option<Self> {
        let attrs = input.call(Attribute::parse_outer).ok()?;
        let (ours, attrs): (Vec<_>, Vec<_>) =
            attrs.into_iter().partition(|attr| is_step(attr.path()));
        let mut ours = ours.into_iter();
        let attr = ours.next()?;
        let vis = input.parse().ok()?;
        let mut sig: Signature = input.parse().ok()?;
        let body = match input.parse::<TokenTree>().ok()? {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                group.to_token_stream()
            }
            // A `;`: rustc asks for the body.
            punct @ TokenTree::Punct(_) => punct.to_token_stream(),
            _ => return None,
        };
        let from = sig.inputs.iter_mut().map(take_from).collect();
        Some(Self {
            attrs,
            attr,
            repeated: ours.collect(),
            args: StepArgs::default(),
            vis,
            sig,
            from,
            body,
        })
    }
}

fn take_from(input: &mut FnArg) -> From {
    let attrs = match input {
        FnArg::Receiver(receiver) => &mut receiver.attrs,
        FnArg::Typed(param) => &mut param.attrs,
    };
    let Some(position) = attrs.iter().position(|attr| attr.path().is_ident("from")) else {
        return From::Absent;
    };
    let attr = attrs.remove(position);
    match attr.parse_args_with(Ident::parse_any) {
        Ok(name) => From::Name(name),
        Err(_) => From::Malformed(Box::new(attr)),
    }
}
