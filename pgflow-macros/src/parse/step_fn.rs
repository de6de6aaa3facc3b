//! A function under `#[step]`.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{
    Attribute, FnArg, Meta, Pat, Signature, Visibility,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use super::{
    StepArgs,
    item::body,
    mention::Mention,
    step_attr::{StepAttrs, is_condition},
};
use crate::names::is_misspelt;

/// The function with `#[step]` and `#[from(..)]` taken off.
pub(crate) struct StepFn {
    pub(crate) attrs: Vec<Attribute>,
    pub(super) attr: Attribute,
    pub(crate) args: StepArgs,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    /// For each of the signature's inputs.
    pub(crate) from: Vec<From>,
    pub(crate) body: TokenStream,
    /// Attributes that would make the function disappear.
    pub(crate) conditions: Vec<Attribute>,
    /// The same of its parameters.
    pub(crate) param_conditions: Vec<Attribute>,
    /// The mistakes of its attributes.
    pub(super) mistakes: Vec<syn::Error>,
    /// `true` if the attribute is another word, which may be meant for `step`.
    pub(super) is_misspelt: bool,
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
        let attrs = StepAttrs::read(attrs)?;
        let vis = input.parse().ok()?;
        let mut sig: Signature = input.parse().ok()?;
        if attrs.is_misspelt && sig.asyncness.is_none() {
            return None;
        }
        let body = body(input).ok()?;
        let mut mistakes = attrs.mistakes;
        let inputs = sig.inputs.iter_mut();
        let from = inputs.map(|it| take_from(it, &mut mistakes)).collect();
        let params = sig.inputs.iter().flat_map(attrs_of);
        Some(Self {
            attrs: attrs.kept,
            attr: attrs.step,
            args: StepArgs::default(),
            vis,
            from,
            body,
            conditions: attrs.conditions,
            param_conditions: params.filter(|it| is_condition(it)).cloned().collect(),
            mistakes,
            is_misspelt: attrs.is_misspelt,
            sig,
        })
    }

    /// The names by which its parameters take values.
    pub(crate) fn taken_names(&self) -> impl Iterator<Item = String> {
        let inputs = self.sig.inputs.iter().zip(&self.from);
        inputs.filter_map(|(input, from)| match (from, input) {
            (From::Name(name), _) => Some(name.unraw().to_string()),
            (From::Absent, FnArg::Typed(param)) => match &*param.pat {
                Pat::Ident(pat) => {
                    let name = pat.ident.unraw().to_string();
                    Some(name.strip_prefix('_').unwrap_or(&name).to_owned())
                }
                _ => None,
            },
            (From::Absent | From::Malformed(_), _) => None,
        })
    }
}

fn attrs_of(input: &FnArg) -> &[Attribute] {
    match input {
        FnArg::Receiver(receiver) => &receiver.attrs,
        FnArg::Typed(param) => &param.attrs,
    }
}

fn take_from(input: &mut FnArg, mistakes: &mut Vec<syn::Error>) -> From {
    let attrs = match input {
        FnArg::Receiver(receiver) => &mut receiver.attrs,
        FnArg::Typed(param) => &mut param.attrs,
    };
    let (ours, others): (Vec<_>, Vec<_>) =
        (std::mem::take(attrs).into_iter()).partition(|attr| is_from(attr) || may_be_from(attr));
    *attrs = others;
    let mut ours = ours.into_iter();
    let Some(attr) = ours.next() else {
        return From::Absent;
    };
    mistakes.extend(ours.map(|attr| {
        syn::Error::new_spanned(
            attr,
            "`#[from]` is given twice; a parameter stands for one value; remove one",
        )
    }));
    if !is_from(&attr) {
        mistakes.push(syn::Error::new_spanned(
            attr.path(),
            format!(
                "there is no attribute `{}` for a parameter of a step\n\nhelp: did you mean `from`?",
                crate::model::types::show(attr.path())
            ),
        ));
    }
    if let Ok(name) = attr.parse_args_with(Ident::parse_any) {
        return From::Name(name);
    }
    let written = match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(meta) => meta.value.to_token_stream(),
        Meta::Path(_) => TokenStream::new(),
    };
    match Mention::parse_all.parse2(written) {
        Ok(mention) if mention.is_of_the_flow() => {
            let name = mention.function_name();
            mistakes.push(syn::Error::new_spanned(
                &attr,
                format!("a value is named by the function of its step: write `#[from({name})]`"),
            ));
            From::Name(name)
        }
        _ => From::Malformed(Box::new(attr)),
    }
}

fn is_from(attr: &Attribute) -> bool {
    attr.path().is_ident("from")
}

fn may_be_from(attr: &Attribute) -> bool {
    let name = attr.path().get_ident();
    matches!(attr.meta, Meta::List(_))
        && name.is_some_and(|name| is_misspelt(&name.to_string(), "from"))
}
