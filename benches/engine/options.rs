//! The options of the command line.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;

use crate::{
    scenario::Scenario,
    variant::{Events, Mode, Variant},
};

/// Measures what the engine costs: tasks a second, latency, processor time, statements, WAL.
///
/// Without a URL it starts a private Postgres that is as durable as a real one, and removes it
/// afterwards. The database that a URL names should hold nothing else: the benchmark fills it, and
/// empties the tables of pgflow when all runs in them are its own.
///
/// Machines drift: compare figures of one run with each other, never with those of another day.
/// `benches/README.md` says what each figure means.
#[derive(Debug, Parser)]
#[command(name = "engine", bin_name = "cargo bench --bench engine --", version = None, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) hidden: Option<Hidden>,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Hidden {
    /// The worker of the scenario `latency`.
    #[command(hide = true)]
    Serve(Serve),
}

/// The options of the worker in its own process. The database is that of `DATABASE_URL`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Serve {
    #[arg(long, value_enum)]
    pub(crate) mode: Mode,
    #[arg(long)]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) worker: Worker,
    #[command(flatten)]
    pub(crate) session: Session,
}

/// The size of a worker.
#[derive(Debug, Clone, Copy, Args, Serialize)]
pub(crate) struct Worker {
    /// Slots of each worker, and so the size of its batches. In step mode each step's worker has
    /// that many
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = one_or_more)]
    pub(crate) concurrency: usize,
    /// Connections of each instance's pool, and of those who start runs
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Bytes of the input of each run (of each element, for maps) and of each step's output; steps
    /// return a string of that size
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub(crate) payload: usize,
}

/// Settings of all sessions.
#[derive(Debug, Clone, Copy, Args, Serialize)]
pub(crate) struct Session {
    /// The wait of commits for the disk; for all sessions of the benchmark [default: as the
    /// server has it, `on` for the private one]
    #[arg(long, value_enum, value_name = "WHETHER")]
    pub(crate) synchronous_commit: Option<Switch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct Options {
    /// The scenarios to measure; by default everything but `map`
    #[arg(value_enum, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<Scenario>,

    /// The database to measure, with a role that may migrate it [default: a private server]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    #[serde(skip)]
    pub(crate) url: Option<String>,

    /// A setting of the private server, such as `shared_buffers=4GB`; may be repeated
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) settings: Vec<(String, String)>,

    /// Counts statements on the private server, by `pg_stat_statements`
    #[arg(long, value_enum, default_value_t = Switch::On, value_name = "WHETHER")]
    pub(crate) statements: Switch,

    /// One queue for a flow and one worker, a queue and a worker for each step, or both,
    /// interleaved
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [ModeOption::Flow], value_name = "MODE")]
    mode: Vec<ModeOption>,

    /// The event levels to measure with, interleaved: several with commas between
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Events::Runs], value_name = "LEVEL")]
    events: Vec<Events>,

    /// Ended runs that the database holds before; several with commas between are interleaved, each
    /// in a database of its own, and a million takes one to three minutes
    #[arg(long, value_delimiter = ',', default_values_t = [0], value_name = "RUNS")]
    history: Vec<u64>,

    /// Times that the whole sequence is repeated
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,

    /// Instances of the worker (in step mode: of all steps' workers), in this process and each with
    /// a pool of its own
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) workers: u32,

    #[command(flatten)]
    pub(crate) worker: Worker,

    #[command(flatten)]
    pub(crate) session: Session,

    /// Runs in each measurement [default: as many as have 10,000 tasks; 300 for `latency`, 500 for
    /// `starvation`, 2,000 for `start`]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub(crate) runs: Option<usize>,

    /// Elements of the scenario `map`
    #[arg(long, default_value_t = 2_000, value_name = "N", value_parser = one_or_more)]
    pub(crate) elements: usize,

    /// Start runs while the worker works; otherwise all are queued before
    #[arg(long)]
    pub(crate) online: bool,

    /// Seconds for which the flow runs before it is measured, with autovacuum as the server has it
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) churn: f64,

    /// Tasks that run before each measurement, so that all sessions know their statements
    #[arg(long, default_value_t = 500, value_name = "TASKS")]
    pub(crate) warm_up: usize,

    /// Seconds for which `idle`, and the idle worker of `latency`, are watched
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) idle_seconds: f64,

    /// The sleep of the slow step of `starvation`, in milliseconds
    #[arg(long, default_value_t = 50, value_name = "MS")]
    pub(crate) slow_ms: u64,

    /// Write all figures of all repetitions into this file
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) json: Option<PathBuf>,

    /// Given by `cargo bench`
    #[arg(long, hide = true, action = ArgAction::SetTrue)]
    #[serde(skip)]
    bench: bool,
}

/// Modes on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum ModeOption {
    Flow,
    Step,
    Both,
}

impl Options {
    pub(crate) fn scenarios(&self) -> &[Scenario] {
        if self.scenarios.is_empty() {
            Scenario::ALL
        } else {
            &self.scenarios
        }
    }

    pub(crate) fn variants(&self) -> Vec<Variant> {
        Variant::all(&self.modes(), &unique(&self.events), &self.histories())
    }

    pub(crate) fn modes(&self) -> Vec<Mode> {
        let modes = self.mode.iter().flat_map(|mode| match mode {
            ModeOption::Flow => vec![Mode::Flow],
            ModeOption::Step => vec![Mode::Step],
            ModeOption::Both => vec![Mode::Flow, Mode::Step],
        });
        unique(&modes.collect::<Vec<_>>())
    }

    pub(crate) fn histories(&self) -> Vec<u64> {
        unique(&self.history)
    }

    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs_f64(self.idle_seconds)
    }
}

fn unique<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let mut unique = Vec::new();
    for &value in values {
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    unique
}

fn one_or_more(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(error.to_string()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    Ok(seconds)
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected a name, `=` and a value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
