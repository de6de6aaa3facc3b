//! Integration tests.

mod client;
mod compat;
mod examples;
mod migrate;
mod readme;
mod sql;
mod support;
mod upgrade;
mod worker;
