//! Integration tests.

mod client;
mod support;
mod worker;
