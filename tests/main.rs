//! Integration tests.

mod chaos;
mod client;
mod compat;
mod examples;
mod maintenance;
mod migrate;
mod model;
mod mutations;
mod operations;
mod readme;
mod roles;
mod sql;
mod style;
mod support;
mod testing;
mod upgrade;
mod worker;
