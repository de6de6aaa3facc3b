//! The `#[flow]` and `#[step]` attributes of `pgflow`.
//!
//! The way of an attribute: `parse` reads tokens, `model` says what they mean, `check` reports what
//! is wrong with that, `expand` writes the code. A mistake never stops the way: its part of the
//! model is marked, and the rest is emitted.

mod check;
mod errors;
mod expand;
mod fallback;
mod flow;
mod model;
mod names;
mod parse;

use proc_macro::TokenStream;

#[doc = include_str!("flow.md")]
#[proc_macro_attribute]
pub fn flow(args: TokenStream, item: TokenStream) -> TokenStream {
    flow::expand(args.into(), &item.into()).into()
}

#[doc = include_str!("step.md")]
#[proc_macro_attribute]
pub fn step(_: TokenStream, item: TokenStream) -> TokenStream {
    flow::stray_step(&item.into()).into()
}
