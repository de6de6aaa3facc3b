//! The attributes, on tokens that exist outside of a compiler too, so that tests can call them.

use proc_macro2::{Span, TokenStream};
use quote::quote;

use crate::{
    check,
    errors::Errors,
    expand, fallback,
    model::Flow,
    parse::{FlowArgs, FlowImpl},
};

/// `#[flow(args)] item`.
pub(crate) fn expand(args: TokenStream, item: &TokenStream) -> TokenStream {
    fallback::guard(item, || {
        let mut errors = Errors::default();
        let mut source = match FlowImpl::parse(item.clone()) {
            Ok(source) => source,
            Err(error) => {
                errors.push(error);
                return fallback::unchanged(item, errors);
            }
        };
        if !check::is_possible(&source, &mut errors) {
            return fallback::unchanged(item, errors);
        }
        source.make_inherent();
        let args = source.all_arguments(args, &mut errors);
        let args = FlowArgs::parse(args, &mut errors);
        source.read_step_args(&mut errors);
        let flow = Flow::read(&args, &source);
        check::check(&flow, &source, &mut errors);
        let item = expand::user_item(&source, !errors.is_empty());
        let generated = expand::generated(&flow);
        let errors = errors.into_tokens();
        quote!(#item #generated #errors)
    })
}

/// `#[step]` without a `#[flow]` around it: that one takes the attribute away.
pub(crate) fn stray_step(item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    errors.at(
        Span::call_site(),
        "`#[step]` marks a step inside a `#[flow(..)] impl` block; the `#[flow]` attribute is missing here, or a \
         macro wrote this function: `#[flow]` sees only what is written in the block",
    );
    fallback::unchanged(item, errors)
}
