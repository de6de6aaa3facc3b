//! From tokens to syntax: the `impl` block and its steps, and the arguments of the attributes.
//!
//! Lenient on purpose: bodies stay raw tokens, so a half-written one is rustc's business alone, and
//! what can't be read is passed through.

mod arguments;
mod delimited;
mod duration;
mod flow_args;
mod flow_impl;
mod item;
#[cfg(test)]
mod item_tests;
mod json;
mod list;
mod mention;
mod misspelt;
mod pattern;
#[cfg(test)]
mod proposals;
mod repair;
mod run_end;
mod step_args;
mod step_attr;
mod step_fn;
mod table;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
mod twice;
mod type_value;
mod value;

pub(crate) use arguments::Keys;
pub(crate) use flow_args::FlowArgs;
pub(crate) use flow_impl::FlowImpl;
pub(crate) use item::{Item, UnreadableKind};
pub(crate) use mention::Mention;
pub(crate) use pattern::Pattern;
pub(crate) use step_args::StepArgs;
pub(crate) use step_attr::removed_everywhere;
pub(crate) use step_fn::{From, StepFn};
