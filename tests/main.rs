//! Integration tests.

mod sql;
mod support;
