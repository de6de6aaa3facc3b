//! The rules of definitions, one module for each.

#[cfg(feature = "shape")]
mod conditions;
mod durations;
mod edges;
mod end_steps;
mod graphs;
mod mermaid;
mod names;
mod options;
#[cfg(feature = "shape")]
mod shape;
mod skipping;
mod slugs;
mod support;
