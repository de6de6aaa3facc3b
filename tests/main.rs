//! Integration tests.

mod client;
mod migrate;
mod support;
mod worker;
