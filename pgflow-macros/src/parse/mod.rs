//! From tokens to syntax: the `impl` block and its steps, and the arguments of the attributes.
//!
//! Lenient on purpose: bodies stay raw tokens, so a half-written one is rustc's business alone, and what can't be read
//! is passed through.

mod arguments;
mod flow_args;
mod item;
mod list;
mod other_words;
mod pattern;
mod step_args;
mod step_fn;
#[cfg(test)]
mod tests;
mod type_value;
mod value;

pub(crate) use arguments::Keys;
pub(crate) use flow_args::FlowArgs;
pub(crate) use item::{FlowImpl, Item};
pub(crate) use pattern::Pattern;
pub(crate) use step_args::StepArgs;
pub(crate) use step_fn::{From, StepFn};
