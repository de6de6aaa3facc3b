//! Integration tests.

mod migrate;
mod sql;
mod support;
