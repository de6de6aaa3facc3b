//! Integration tests.
mod migrate;
