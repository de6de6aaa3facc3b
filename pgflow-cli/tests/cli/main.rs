//! The `pgflow` command against a private Postgres: what it writes, and what it exits with.

mod connection;
mod coverage;
mod delete_flow;
// Private servers need a Unix.
#[cfg(unix)]
mod dev;
mod init;
mod migrate;
mod prune;
mod runs;
mod start;
mod support;
mod why;
