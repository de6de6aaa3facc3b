//! Under which conditions the figures came about.

use std::fmt;

use serde::Serialize;

use crate::{Result, contestants::ENTRIES, options::Options, server::Server};

const LOCK_FILE: &str = include_str!("../Cargo.lock");

/// The highest load of a machine that does hardly anything else.
const QUIET: f64 = 0.5;

#[derive(Debug, Serialize)]
pub(crate) struct Conditions {
    versions: Vec<(String, String)>,
    server: Vec<(String, String)>,
    cores: usize,
    /// The other load of the machine; `None` without `/proc`.
    load_average: Option<f64>,
    jobs: u32,
    concurrency: u16,
    connections: u16,
    repetitions: u16,
}

impl Conditions {
    pub(crate) async fn of(server: &Server, options: &Options) -> Result<Self> {
        let mut packages = ENTRIES.map(|entry| entry.package).to_vec();
        packages.dedup();
        packages.sort_unstable();
        packages.dedup();
        let versions = packages.into_iter().map(|package| {
            let version = locked_version(package)?;
            Ok((package.to_owned(), version.to_owned()))
        });
        Ok(Self {
            versions: versions.collect::<Result<_>>()?,
            server: server.conditions().await?,
            cores: std::thread::available_parallelism()?.get(),
            load_average: load_average(),
            jobs: options.jobs,
            concurrency: options.concurrency,
            connections: options.connections,
            repetitions: options.repeat,
        })
    }
}

/// Processes that ran or waited for a core, in the last minute.
fn load_average() -> Option<f64> {
    let averages = std::fs::read_to_string("/proc/loadavg").ok()?;
    averages.split_whitespace().next()?.parse().ok()
}

fn locked_version(package: &str) -> Result<&'static str> {
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK_FILE.lines().skip_while(|line| *line != name).skip(1);
    let version = lines
        .next()
        .and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.ok_or_else(|| format!("the lock file has no version of {package}").into())
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = |pairs: &[(String, String)], between: &str| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| format!("{name}{between}{value}"));
            pairs.collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "{}", pairs(&self.versions, " "))?;
        writeln!(f, "{}", pairs(&self.server, " = "))?;
        write!(f, "{} cores for all; load average before: ", self.cores)?;
        match self.load_average {
            None => writeln!(f, "not known")?,
            Some(load) if load <= QUIET => writeln!(f, "{load:.2}")?,
            Some(load) => writeln!(
                f,
                "{load:.2}, so the machine is busy: figures per second mislead, processor time for a task says more"
            )?,
        }
        writeln!(
            f,
            "{} jobs queued first, then a worker: {} handlers at a time, {} connections; a database for each; {} repetitions, interleaved",
            self.jobs, self.concurrency, self.connections, self.repetitions
        )
    }
}
