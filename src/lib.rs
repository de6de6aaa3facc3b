//! Workflows written as annotated async functions, checked by the compiler, run by Postgres.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
pub use pgflow_runtime::__private;
