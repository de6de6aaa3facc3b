//! The meaning of the source: steps, their dependencies, the value of each parameter.
//!
//! Reading never fails and reports nothing. A part that makes no sense holds its mistake instead of
//! a meaning; [`check`](crate::check) puts it into words and [`expand`](crate::expand) works around
//! it.

mod definition;
mod edge;
mod flow;
mod output;
mod param;
mod scope;
mod step;
#[cfg(test)]
mod tests;
pub(crate) mod types;

pub(crate) use edge::{Edge, Link, MapOver};
pub(crate) use flow::{Flow, Skips};
pub(crate) use output::{Output, OutputMistake, UnstorableKind};
pub(crate) use param::{Binding, Mistake, Param};
pub(crate) use step::Step;
