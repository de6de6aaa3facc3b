//! Integration tests.
mod migrate;
mod support;
