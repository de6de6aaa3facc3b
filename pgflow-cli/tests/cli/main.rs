//! The `pgflow` command against a private Postgres: what it writes, and what it exits with.

mod connection;
// Private servers need a Unix.
#[cfg(unix)]
mod dev;
mod migrate;
mod runs;
mod start;
mod support;
