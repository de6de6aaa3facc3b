//! The runtime of `pgflow`: migrations, startup, workers and client.
//!
//! Applications depend on the facade crate `pgflow`, which re-exports the public items.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod client;
mod contained;
pub mod context;
#[cfg(feature = "dev")]
pub mod dev;
pub mod flow;
pub mod inspect;
pub mod inspect_flow;
mod listening;
mod lock;
pub mod maintenance;
pub mod migrate;
pub mod operations;
mod per_pool;
#[doc(hidden)]
pub mod printable;
pub mod sql;
pub mod startup;
pub mod testing;
pub mod worker;

#[doc(hidden)]
pub use flow::__private;
pub use pgflow_definition as definition;
