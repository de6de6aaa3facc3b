//! The `pgflow` command against a private Postgres: what it writes, and what it exits with.

mod completions;
mod connection;
mod coverage;
mod delete_flow;
// Private servers need a Unix.
#[cfg(unix)]
mod dev;
// Compares what a Unix shell shows.
#[cfg(unix)]
mod docs;
mod end_steps;
mod flows;
mod init;
mod migrate;
mod prune;
mod queues;
mod running;
mod runs;
mod start;
mod support;
mod terminal;
mod tune;
#[cfg(unix)]
mod watch;
mod why;
mod workers;
