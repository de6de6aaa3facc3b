//! Integration tests.

mod client;
mod migrate;
mod sql;
mod support;
mod worker;
