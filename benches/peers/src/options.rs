//! The options of the command line.

use std::path::PathBuf;

use clap::Parser;

/// The same no-op work by pgflow and by other job libraries over Postgres, side by side.
#[derive(Debug, Clone, Parser)]
#[command(name = "benches/peers/run")]
pub(crate) struct Options {
    /// Jobs of each contestant; a job of several steps makes as many tasks
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    pub(crate) jobs: u32,

    /// Handlers at a time
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) concurrency: u16,

    /// Connections in the pool of a contestant
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(4..=150))]
    pub(crate) connections: u16,

    /// The number of runs of each contestant
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) repeat: u16,

    /// Only contestants whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,

    /// A server of yours, by a superuser; databases `peers_..` are created on it, and dropped.
    /// Without it: a private server
    #[arg(long)]
    pub(crate) url: Option<String>,

    /// Counts statements as well, with `pg_stat_statements`, which costs each statement a little
    #[arg(long)]
    pub(crate) statements: bool,

    /// Writes all samples and their conditions to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}
